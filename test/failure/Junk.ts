/**
 * Generates hostile errors, and checks their classification.
 */
import { assert } from "@effect/vitest";
import { Schema } from "effect";
import { Failure } from "../../src/domain/Failure.ts";
import { causeDepthMax } from "../../src/domain/Limits.ts";
import { classify, classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { seeded } from "../Seeded.ts";

/** The seed of the first error by default. */
export const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_121);
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

/** Builds any value: scalars, records with meaningful names, errors, cycles, hostile getters, proxies, frozen and bare objects. */
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

/**
 * Classifies many errors. Each failure must fit its schema, be the same twice, and keep within every limit.
 *
 * @returns the kinds of the failures
 */
export const classifyJunk = (rounds: number, from: number): ReadonlySet<string> => {
  const random = seeded(from);
  const kinds = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const error = junk(random);
    const failure = classify(error, { nowMs: 1_000 });
    kinds.add(failure.kind);
    const stored: unknown = JSON.parse(JSON.stringify(failure));
    assert.deepStrictEqual(decode(stored), stored);
    assert.deepStrictEqual(classify(error, { nowMs: 1_000 }), failure);
    assert.isAtMost(failure.fingerprint?.depth ?? 0, causeDepthMax);
    classifyEvent(error);
    classifyResponse({ status: Math.floor(random() * 700), headers: {}, body: error });
  }
  return kinds;
};
