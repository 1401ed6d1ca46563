/**
 * Errors as they are thrown, wrapped or bare: their classification in a run, and the error that it passes on.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const coded = (code: string) => Object.assign(new Error("read failed"), { code });

/** Options with raw errors, which no SDK has wrapped, for the FailureClassifier. */
const raw = (attempts: ReadonlyArray<Stream.Stream<S.ScriptedPart, unknown>>, runId = "r") => {
  let count = 0;
  return {
    provider: { id: "raw" },
    tools: [],
    runId,
    attempt: () => attempts[count++] ?? Stream.die(new Error("not in the script")),
    observe: (part: S.ScriptedPart) => part.says,
  };
};
const healthyStream = Stream.suspend(() => S.scripted(S.hello).attempt(contextOf()));
const contextOf = () => ({
  run_id: "r",
  attempt: 1,
  mode: "first" as const,
  request: "first" as const,
  calls: [],
  discarded: [],
  cursor: undefined,
  seam: undefined,
  route: undefined,
  delivery: () => undefined,
  bytes: () => undefined,
});

describe("A transport's error", () => {
  it.effect("that no SDK wrapped is found deep in the cause chain, and retried", () =>
    Effect.gen(function* () {
      const wrapped = new Error("request failed", { cause: new Error("inner", { cause: coded("ECONNRESET") }) });
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(wrapped), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.code, "ECONNRESET");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("with nothing but its text is classified last, and still retried", () =>
    Effect.gen(function* () {
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail("socket hang up"), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("in every attempt gives exactly n+1 requests and the original error, unchanged (L12)", () =>
    Effect.gen(function* () {
      const error = coded("ECONNRESET");
      const broken = Stream.fail(error);
      const seen = yield* S.played((yield* StreamProcessor).run(raw([broken, broken, broken, broken, healthyStream])));
      assert.strictEqual(seen.lines.filter((it) => it.startsWith("attempt ")).length, 4);
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
      assert.strictEqual(S.errorOf(seen.exit)?.cause, error);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("An abort", () => {
  it.effect("of the provider with a healthy caller is retried like a transport failure (L10)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, { interrupt: true }], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual((yield* S.recordOf("r")).incidents[0]?.failure, { kind: "cancelled", by: "provider" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that nothing in this process requested is the provider's, too", () =>
    Effect.gen(function* () {
      const abort = new DOMException("This operation was aborted", "AbortError");
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(abort), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("with a status inside is classified by the status: a 500 is the server's error, a 401 the rejection", () =>
    Effect.gen(function* () {
      const wrap = (status: number) =>
        Object.assign(new DOMException("aborted", "AbortError"), { cause: { status, message: "upstream" } });
      const processor = yield* StreamProcessor;
      yield* S.played(processor.run(raw([Stream.fail(wrap(500)), healthyStream], "five")));
      const rejected = yield* S.played(processor.run(raw([Stream.fail(wrap(401))], "four")));
      assert.strictEqual((yield* S.recordOf("five")).incidents[0]?.failure.kind, "server_error");
      assert.strictEqual((yield* S.recordOf("four")).incidents[0]?.failure.kind, "rejected");
      assert.strictEqual(rejected.lines.at(-1), "end do_not_retry not_retryable");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A rejection", () => {
  it.effect("by quota outranks everything retryable", () =>
    Effect.gen(function* () {
      const quota = { status: 429, error: { code: "insufficient_quota", message: "You exceeded your current quota" } };
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(quota)])));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      const failure = (yield* S.recordOf("r")).incidents[0]?.failure;
      assert.strictEqual(failure?.kind === "rejected" ? failure.reason : failure?.kind, "quota");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("by 402 is a quota, never a lost connection", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 402, reason: "quota" })]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.notMatch(S.errorOf(seen.exit)?.message ?? "", /connection/i);
      assert.match(S.errorOf(seen.exit)?.message ?? "", /rejected/);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("passes through unchanged", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 400, reason: "context_overflow" })]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const error = S.errorOf(seen.exit);
      assert.strictEqual(error?.reason, "do_not_retry");
      assert.deepStrictEqual(error?.failure, { kind: "rejected", status: 400, reason: "context_overflow" });
      assert.instanceOf(error?.cause, S.ProviderBroke);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("by 401 refreshes the credentials once, and only once", () =>
    Effect.gen(function* () {
      let refreshes = 0;
      const unauthorised = [S.fail({ kind: "rejected", status: 401, reason: "auth" })];
      const provider = S.scripted(unauthorised, unauthorised);
      const refreshCredentials = Effect.sync(() => {
        refreshes += 1;
      });
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { refreshCredentials })));
      assert.strictEqual(refreshes, 1);
      assert.deepStrictEqual(
        seen.lines.filter((it) => it.startsWith("retry")),
        ["retry replay credentials_refreshed"],
      );
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("whose credentials cannot be refreshed ends the run with it", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 401, reason: "auth" })]);
      const refreshCredentials = Effect.fail("no network");
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { refreshCredentials })));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});
