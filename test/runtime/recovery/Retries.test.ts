/**
 * Retries: their times and number, the events that the caller gets, and their record.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

describe("A retry", () => {
  it.effect("waits for Retry-After", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rate_limited", status: 429, retry_after_ms: 7_000 })], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const scheduled = seen.events.find((it) => it._tag === "RetryScheduled");
      assert.isAtLeast(scheduled?.delay_ms ?? 0, 7_000);
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("reports attempt, mode, delay and reason of a retry to the caller", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const event = seen.events.find((it) => it._tag === "RetryScheduled");
      assert.deepInclude(event, { attempt: 1, mode: "replay", rule: "nothing_shown", delay_ms: 375 });
      assert.isAbove(event?.message.length ?? 0, 20);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("comes three times, after doubling waits with jitter, by the default budget", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.reset];
      const provider = S.scripted(broken, broken, broken, broken);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const delays = seen.events.flatMap((it) => (it._tag === "RetryScheduled" ? [it.delay_ms] : []));
      assert.deepStrictEqual(delays, [375, 750, 1_500]);
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("uses its wait, even if the response ended without an error before its marker", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start], [S.start], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      const { attempts } = yield* S.recordOf("r");
      assert.deepStrictEqual(
        attempts.map(({ run }) => run?.elapsed_ms),
        [0, 375, 1_125],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("comes once, after a fixed second, with the strict preset", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.reset];
      const provider = S.scripted(broken, broken);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { policy: RecoveryPolicy.strict })),
      );
      const delays = seen.events.flatMap((it) => (it._tag === "RetryScheduled" ? [it.delay_ms] : []));
      assert.deepStrictEqual(delays, [1_000]);
      assert.strictEqual(provider.attempts.length, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("follows truncated arguments of a call that was not handed over", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.errorEvent({ kind: "invalid_tool_input" })], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("of a run that reveals on_complete is silent after every break before the end", () =>
    Effect.gen(function* () {
      const provider = S.scripted(
        [S.start, S.text("hal"), S.text("f"), S.reset],
        [S.start, S.text("half"), S.callStarts("bash")],
        S.hello,
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

  it.effect("records its incident as recovered, and never as the run's final one", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(
        record.incidents.map((it) => it.status),
        ["recovered"],
      );
      assert.strictEqual(record.end?.state, "completed");
      assert.isUndefined(record.end?.incident);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A stall", () => {
  it.effect("is an incident on record with the watchdog's own name", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.never], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(record.incidents[0]?.failure, { kind: "stalled", clock: "first_progress" });
      assert.isTrue(record.evidence.first.some((it) => it.event === "watchdog" && it.detail === "first_progress"));
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is not detected in a slow but healthy model", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.wait(170_000), S.text("hello"), S.wait(299_000), S.done]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "hello", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );
});
