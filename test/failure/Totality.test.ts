/**
 * Properties over nasty errors: classify answers always and alike, in bounds, and never repeats what an error holds.
 */
import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { Failure, type Fingerprint } from "../../src/domain/Failure.ts";
import { causeDepthMax } from "../../src/domain/Limits.ts";
import { classify, classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { nodesMax, walk } from "../../src/failure/thrown/CauseChain.ts";
import { seeded } from "../Seeded.ts";

const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_121);
const decode = Schema.decodeUnknownSync(Failure);

const fieldNames =
  "name message code status statusCode status_code type error cause reason reasons errors response data body responseBody headers responseHeaders details metadata innererror _tag __type lastError suppressed http detail choices candidates finish_reason finishReason retryAfter retryDelay syscall path rstCode $metadata constructor toString stack object origin lastStreamID streamId get".split(
    " ",
  );
const scalars: ReadonlyArray<unknown> = [
  ...[undefined, null, true, 0, 1, 7, 23, 200, 401, 429, 499, 500, 503, 529, 1e21, Number.NaN, -1, 10n],
  ..."error ECONNRESET ENOTFOUND insufficient_quota overloaded_error RESOURCE_EXHAUSTED AbortError TimeoutError AiError HttpClientError".split(
    " ",
  ),
  ...'Fail Interrupt MALFORMED_FUNCTION_CALL ERR_HTTP2_STREAM_ERROR terminated <html> {"error":{"code":500}} 48s response.failed'.split(
    " ",
  ),
  "Please try again in 1s",
  Symbol("x"),
  () => 1,
];

/** Builds any value: scalars, records with telling names, errors, cycles, hostile getters, proxies, frozen and bare objects. */
const junk = (random: () => number): unknown => {
  const made: Array<object> = [];
  const pick = <A>(from: ReadonlyArray<A>): A | undefined => from[Math.floor(random() * from.length)];
  const build = (depth: number): unknown => {
    if (depth === 0 || random() < 0.3) return pick(scalars);
    if (made.length > 0 && random() < 0.1) return pick(made);
    if (random() < 0.15) return Array.from({ length: Math.floor(random() * 4) }, () => build(depth - 1));
    const bases = [
      {},
      new Error("x"),
      new TypeError("fetch failed"),
      Object.create(null),
      new Map(),
      new DOMException("x", "AbortError"),
    ];
    const target: object = pick(bases) ?? {};
    made.push(target);
    for (let fields = Math.floor(random() * 6); fields > 0; fields -= 1) {
      const key = pick(fieldNames) ?? "x";
      const value = build(depth - 1);
      const throwing = random() < 0.08;
      const get = () => {
        if (throwing) throw new Error("getter");
        return value;
      };
      Reflect.defineProperty(target, key, { configurable: true, enumerable: true, get });
    }
    if (random() < 0.1) Object.freeze(target);
    return random() < 0.1 ? hostileProxy(target, random) : target;
  };
  return build(6);
};

const hostileProxy = (target: object, random: () => number): object => {
  const fail = () => {
    throw new Error("trap");
  };
  if (random() < 0.3) {
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    return proxy;
  }
  return new Proxy(target, random() < 0.5 ? { get: fail } : { getPrototypeOf: fail, ownKeys: fail });
};

describe(`classification of junk (seed ${seed})`, () => {
  it("answers always, with a failure of the schema, twice the same", () => {
    const random = seeded(seed);
    const kinds = new Set<string>();
    for (let round = 0; round < 10_000; round += 1) {
      const error = junk(random);
      const failure = classify(error, { nowMs: 1_000 });
      kinds.add(failure.kind);
      assert.deepStrictEqual(decode(JSON.parse(JSON.stringify(failure))), JSON.parse(JSON.stringify(failure)));
      assert.deepStrictEqual(classify(error, { nowMs: 1_000 }), failure);
      assert.isAtMost(failure.fingerprint?.depth ?? 0, causeDepthMax);
      classifyEvent(error);
      classifyResponse({ status: Math.floor(random() * 700), headers: {}, body: error });
    }
    // The generator reaches what it is for: the answers are not all `unknown`.
    assert.includeMembers(
      [...kinds],
      ["unknown", "transport", "rejected", "server_error", "cancelled", "rate_limited"],
    );
  });

  it("walks no deeper than eight causes and no wider than its limit", () => {
    const endless = (): object => new Proxy({}, { get: (_, key) => (key === "status" ? undefined : endless()) });
    const links = walk(endless());
    assert.isAtMost(links.length, nodesMax);
    assert.isAtMost(Math.max(...links.map(({ depth }) => depth)), causeDepthMax);
    const cyclic: { cause?: unknown; errors?: unknown } = new Error("socket hang up");
    cyclic.cause = cyclic;
    cyclic.errors = [cyclic, { cause: cyclic }];
    assert.strictEqual(classify(cyclic).kind, "transport");
  });
});

const canaries = [
  "sk-proj-4f9aXQ7b2kLmN8pR3tUv",
  "CANARY-secret-value",
  "hunter2",
  "https://host.example/path?key=CANARY",
  "AKIAIOSFODNN7EXAMPLE",
  "the user's prompt about CANARY",
  "/home/canary/.ssh/id_rsa",
  "eyJhbGciOiJIUzI1NiJ9.CANARY.sig",
  "0123456789abcdef0123456789abcdef",
  "canary_token_value",
  "CanaryError",
  "ERR_CANARY",
  "E4815162342",
];

describe("nothing of an error's text comes out", () => {
  /** Every field of every shape holds the canary; where a number is needed, the shape still classifies. */
  const shapes = (canary: string): ReadonlyArray<unknown> => {
    const body = {
      code: canary,
      type: canary,
      status: canary,
      message: canary,
      param: canary,
      details: [{ reason: canary }],
    };
    const headers = {
      "retry-after": canary,
      authorization: canary,
      "x-amzn-errortype": canary,
      "x-should-retry": canary,
    };
    const error = (fields: object) => Object.assign(new Error(canary, { cause: new Error(canary) }), fields);
    return [
      canary,
      body,
      { error: body },
      { type: "error", error: body },
      { ...body, type: "error", [canary]: canary },
      { [canary]: { message: canary }, [`${canary}Exception`]: canary },
      JSON.stringify({ error: body }),
      `429 ${JSON.stringify({ error: body })}`,
      error({ name: canary, code: canary, _tag: canary, stack: canary, [canary]: canary }),
      error({ name: "AbortError", code: canary }),
      error({ status: 429, headers, error: body, request_id: canary, url: canary }),
      error({ name: "AI_APICallError", statusCode: 503, responseHeaders: headers, responseBody: canary, url: canary }),
      error({ code: "ECONNRESET", hostname: canary, address: canary, syscall: canary }),
      error({ code: "ERR_HTTP2_STREAM_ERROR", http2_code: canary, message: `NGHTTP2_${canary}` }),
      error({ $fault: "client", name: canary, $metadata: { httpStatusCode: 400, requestId: canary } }),
      error({ _tag: "AiError", reason: { _tag: canary, description: canary, http: { body: canary } } }),
      { constructor: { name: canary }, message: canary, code: canary },
      new AggregateError([error({ code: canary }), canary], canary),
      { choices: [{ finish_reason: "error", native_finish_reason: canary, error: body }] },
      { type: "response.failed", response: { error: body, id: canary } },
    ];
  };

  for (const canary of canaries)
    it(`"${canary.slice(0, 24)}" in every field`, () => {
      for (const shape of shapes(canary)) {
        const said = [
          classify(shape, { nowMs: 1_000 }),
          classifyEvent(shape),
          classifyResponse({
            status: 429,
            headers: { "retry-after": canary, "x-amzn-errortype": canary },
            body: shape,
          }),
          classifyResponse({ status: 200, headers: {}, body: shape }),
        ];
        assert.notInclude(JSON.stringify(said).toLowerCase(), canary.toLowerCase());
      }
    });

  it("a code that is known, or made of the words of codes, comes out, and the class of the error", () => {
    const printOf = (error: unknown): Fingerprint | undefined => classify(error).fingerprint;
    class InvalidConfigError extends Error {}
    assert.deepStrictEqual(printOf(new InvalidConfigError("x")), { name: "InvalidConfigError", depth: 0 });
    assert.deepStrictEqual(printOf(Object.assign(new Error("x"), { name: "Config Hunter2" })), {
      name: "Error",
      depth: 0,
    });
    assert.deepStrictEqual(printOf(new RangeError("x")), { name: "RangeError", depth: 0 });
    assert.deepStrictEqual(
      printOf(new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) })),
      {
        name: "Error",
        code: "ECONNRESET",
        depth: 1,
      },
    );
    assert.strictEqual(
      classifyEvent({ error: { code: "unsupported_response_format" } })?.code,
      "unsupported_response_format",
    );
  });
});
