/**
 * What crush and fantasy, foreman and coder promised, and where they failed, through `run`.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import * as S from "./Scripted.ts";

const answer = [S.start, S.text("hello"), S.done];
const coded = (code: string) => Object.assign(new Error("read failed"), { code });

/** Options that let the FailureClassifier read raw errors, as no SDK has wrapped them. */
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
const healthyStream = Stream.suspend(() => S.scripted(answer).attempt(contextOf()));
const contextOf = () => ({
  run_id: "r",
  attempt: 1,
  mode: "first" as const,
  request: "first" as const,
  calls: [],
  discarded: [],
  cursor: undefined,
  delivery: () => undefined,
  bytes: () => undefined,
});

describe("crush and fantasy (#2931, #2945)", () => {
  it.effect("a raw transport error that no SDK wrapped is retried, found deep in the cause chain", () =>
    Effect.gen(function* () {
      const wrapped = new Error("request failed", { cause: new Error("inner", { cause: coded("ECONNRESET") }) });
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(wrapped), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.code, "ECONNRESET");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an error that is only known by its text is read last, and still retried", () =>
    Effect.gen(function* () {
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail("socket hang up"), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("exhaustion gives exactly n+1 requests and the original error, unchanged (L12)", () =>
    Effect.gen(function* () {
      const error = coded("ECONNRESET");
      const broken = Stream.fail(error);
      const seen = yield* S.played((yield* StreamProcessor).run(raw([broken, broken, broken, broken, healthyStream])));
      assert.strictEqual(seen.lines.filter((it) => it.startsWith("attempt ")).length, 4);
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
      assert.strictEqual(S.errorOf(seen.exit)?.cause, error);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an incomplete stream is retryable while nothing was shown", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.kind, "truncated");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a 401 is answered by one refresh of the credentials, and only one", () =>
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

  it.effect("credentials that cannot be refreshed end the run with the provider's own rejection", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 401, reason: "auth" })]);
      const refreshCredentials = Effect.fail("no network");
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { refreshCredentials })));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("foreman (LLMKube #816)", () => {
  it.effect("headless: with reveal on_complete every break before the end is replayed in silence", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.text("hal"), S.text("f"), S.reset],
        [S.start, S.text("half"), S.callStarts("bash")],
        answer,
      );
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { reveal: "on_complete" })));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "retry replay nothing_shown",
        "attempt 2 replay",
        "retry replay nothing_shown",
        "attempt 3 replay",
        "start",
        "hello",
        "done",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("its gap: a clean end of a cut stream is never a success (L5)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half")], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { reveal: "on_complete" })));
      assert.strictEqual(provider.attempts.length, 2);
      assert.deepStrictEqual(seen.lines.slice(-4), ["start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("cut tool-call arguments are retried when nobody was handed the call", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.errorEvent({ kind: "invalid_tool_input" })], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a real API error passes through unchanged", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 400, reason: "context_overflow" })]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const error = S.errorOf(seen.exit);
      assert.strictEqual(error?.reason, "do_not_retry");
      assert.deepStrictEqual(error?.failure, { kind: "rejected", status: 400, reason: "context_overflow" });
      assert.instanceOf(error?.cause, S.ProviderBroke);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the caller's cancel is looked at before a timeout of ours", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.never]);
      const fiber = yield* Effect.forkChild(
        S.watch(processor.run(S.options(provider, { runId: "r", clocks: { first_progress: 1_000 } }))),
      );
      yield* TestClock.adjust(999);
      yield* processor.cancel("r");
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("coder chatd (#26010)", () => {
  it.effect("a provider's own cancel under a healthy caller is retried as a transport failure is (L10)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, { interrupt: true }], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual((yield* S.recordOf("r")).incidents[0]?.failure, { kind: "cancelled", by: "provider" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an abort-shaped error that nobody here asked for is the provider's too", () =>
    Effect.gen(function* () {
      const abort = new DOMException("This operation was aborted", "AbortError");
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(abort), healthyStream])));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the same abort under a cancelled caller is not retried", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.wait(1_000), { interrupt: true }], answer);
      const fiber = yield* Effect.forkChild(S.watch(processor.run(S.options(provider, { runId: "r" }))));
      yield* TestClock.adjust(999);
      yield* processor.cancel("r");
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a 500 wrapped in an abort is the server's error, a 401 in it the rejection: status beats shape", () =>
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

  it.effect("auth and quota signals win over everything retryable", () =>
    Effect.gen(function* () {
      const quota = { status: 429, error: { code: "insufficient_quota", message: "You exceeded your current quota" } };
      const seen = yield* S.played((yield* StreamProcessor).run(raw([Stream.fail(quota)])));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      const failure = (yield* S.recordOf("r")).incidents[0]?.failure;
      assert.strictEqual(failure?.kind === "rejected" ? failure.reason : failure?.kind, "quota");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a retry tells the caller attempt, mode, delay and why", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const event = seen.events.find((it) => it._tag === "RetryScheduled");
      assert.deepInclude(event, { attempt: 1, mode: "replay", rule: "nothing_shown", delay_ms: 375 });
      assert.isAbove(event?.message.length ?? 0, 20);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a slow but healthy model outlives a first-token guard of a minute", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.wait(170_000), S.text("hello"), S.wait(299_000), S.done]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("work of a person is asked for once: a tool's finished effect is never run again", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const charge = guard.mutating("charge_card", () =>
        Effect.sync(() => {
          ran += 1;
        }),
      );
      const gate = yield* Deferred.make<void>();
      const provider = S.scripted(
        [S.start, S.callReady("charge_card"), { run: Deferred.await(gate) }, S.reset],
        [S.start, S.text("charged"), S.done],
      );
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [charge], canContinue: true })),
        (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.andThen(Effect.orDie(charge.run(event.calls[0], undefined)), Deferred.succeed(gate, undefined))
            : Effect.void,
      );
      assert.deepStrictEqual(seen.lines.slice(-6), [
        "retry continue tools_settled",
        "attempt 2 continue",
        "start",
        "charged",
        "done",
        "completed",
      ]);
      assert.strictEqual(ran, 1);
      assert.deepStrictEqual(
        provider.attempts[1]?.calls.map((it) => [it.tool, it.outcome]),
        [["charge_card", "settled"]],
      );
    }).pipe(Effect.provide(S.processor())),
  );
});
