/**
 * Properties over hostile errors: classify always answers, always in the same way and within bounds, and never repeats their text.
 */
import { assert, describe, it } from "@effect/vitest";
import type { Fingerprint } from "../../src/domain/Failure.ts";
import { causeDepthMax } from "../../src/domain/Limits.ts";
import { classify, classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { listLinks, nodesMax } from "../../src/failure/thrown/CauseChain.ts";
import { classifyJunk, seed } from "./Junk.ts";

describe(`classification of junk (seed ${seed})`, () => {
  it("classifies each error as a valid failure, and always as the same one", () => {
    // Checks that the generator reaches more kinds than `unknown`.
    assert.includeMembers(
      [...classifyJunk(2_000, seed)],
      ["unknown", "transport", "rejected", "server_error", "cancelled", "rate_limited"],
    );
  });

  it("walks no deeper than eight causes and no wider than its limit", () => {
    const endless = (): object => new Proxy({}, { get: (_, key) => (key === "status" ? undefined : endless()) });
    const links = listLinks(endless());
    assert.isAtMost(links.length, nodesMax);
    assert.isAtMost(Math.max(...links.map(({ depth }) => depth)), causeDepthMax);
    const cyclic: { cause?: unknown; errors?: unknown } = new Error("socket hang up");
    cyclic.cause = cyclic;
    cyclic.errors = [cyclic, { cause: cyclic }];
    assert.strictEqual(classify(cyclic).kind, "transport");
  });

  it("lists every object once, however many errors lead to it", () => {
    const shared = new Error("socket hang up");
    const links = listLinks(Object.assign(new Error("a", { cause: shared }), { errors: [shared, { cause: shared }] }));
    assert.lengthOf(
      links.filter(({ value }) => value === shared),
      1,
    );
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

describe("the classification repeats no text of an error", () => {
  /** Every field of every shape holds the canary; if a number is needed, the shape still classifies. */
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

  it("keeps a known code, a code made of known words, and the error's class", () => {
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
