/**
 * What PawWork (Astro-Han/pawwork) promised, and each place where it failed, through `run`.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Schema } from "effect";
import { TestClock } from "effect/testing";
import { evidenceFirstMax, evidenceLastMax } from "../../src/domain/Limits.ts";
import type { ToolBoundary } from "../../src/domain/SideEffects.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import * as S from "./Scripted.ts";

const answer = [S.start, S.text("hello"), S.done];
const tool = (effect: ToolBoundary["effect"], executor: ToolBoundary["executor"] = "runtime"): ToolBoundary => ({
  name: "bash",
  executor,
  effect,
});

describe("PawWork #863", () => {
  it.effect("attempt 2 is judged on its own facts: text shown in it asks, however clean attempt 1 was (L3)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], [S.start, S.text("half"), S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "retry replay nothing_shown",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "half",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
      assert.strictEqual(provider.attempts.length, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("attempt 2 with an unguarded tool call asks, however clean attempt 1 was", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], [S.start, S.callStarts("bash"), S.callReady("bash"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("mutating")] })));
      assert.deepStrictEqual(seen.lines.slice(-3), [
        "ask tool_call_handed_over",
        "answer stop",
        "end stopped tool_call_handed_over",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("attempt 2 whose tool was executed asks, however clean attempt 1 was, and the tool ran once", () =>
    Effect.gen(function* () {
      let ran = 0;
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () =>
        Effect.sync(() => {
          ran += 1;
        }),
      );
      const provider = S.scripted([S.start, S.reset], [S.start, S.callReady("bash"), S.wait(10), S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
        event._tag === "Part" && event.calls !== undefined
          ? Effect.forEach(event.calls, (call) => Effect.orDie(bash.run(call, undefined)))
          : Effect.void,
      );
      assert.deepStrictEqual(seen.lines.slice(-3), ["ask tool_ran", "answer stop", "end stopped tool_ran"]);
      assert.strictEqual(ran, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an earlier dirty attempt never blocks a later clean one (L3)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reasoning("hm"), S.reset], [S.start, S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "(hm)",
        "retry replay only_reasoning_shown",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "retry replay nothing_shown",
        "discard 2 after 0",
        "attempt 3 replay",
        "start",
        "hello",
        "done",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a stream that goes silent after progress is a failure, not an end (L5)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half"), S.never]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.deepStrictEqual(seen.lines.slice(-3), ["ask text_shown", "answer stop", "end stopped text_shown"]);
      const [incident] = (yield* S.recordOf("r")).incidents;
      assert.deepStrictEqual(incident?.failure, { kind: "stalled", clock: "idle" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a clean end without the terminal marker is a failure too (L5)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half")]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "end stopped text_shown");
      assert.strictEqual((yield* S.recordOf("r")).incidents[0]?.failure.kind, "truncated");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("input complete but the call not whole never falls through to an automatic retry without a guard", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.callStarts("bash"), S.callComplete("bash"), S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_input_shown");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a processed 5xx with provider tools exposed asks: it never fails open", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "server_error", status: 500 })], answer);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown", "provider")] })),
      );
      assert.strictEqual(seen.lines.at(-1), "end stopped side_effects_unprovable");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("tools that are merely exposed never turn shown text into a side-effect warning (#893, #912, #939)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("half"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "end stopped text_shown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("exposed or disabled runtime tools never block a clean retry", () =>
    Effect.gen(function* () {
      // A disabled tool is not in `tools`; an exposed one of unknown effect was never called.
      const provider = S.scripted([S.start, S.reset], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [tool("unknown")] })));
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a user's cancel is recorded as one, in the middle of a stream", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.text("half"), S.never]);
      const seen = yield* S.played(processor.run(S.options(provider, { runId: "r" })), (event) =>
        S.line(event) === "half" ? processor.cancel("r") : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry user_cancelled");
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(record.incidents[0]?.failure, { kind: "cancelled", by: "user" });
      assert.strictEqual(record.end?.reason, "user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a user's cancel during the backoff is an abort, never a recovered success", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], answer);
      const seen = yield* S.played(processor.run(S.options(provider, { runId: "r" })), (event) =>
        event._tag === "RetryScheduled" ? processor.cancel("r") : Effect.void,
      );
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "retry replay nothing_shown",
        "end do_not_retry user_cancelled",
      ]);
      assert.strictEqual(provider.attempts.length, 1);
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(
        record.incidents.map((it) => [it.decision.rule, it.status]),
        [
          ["nothing_shown", "superseded"],
          ["user_cancelled", "final"],
        ],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a lifecycle close before the break stops the retry", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.never], answer);
      const fiber = yield* Effect.forkChild(S.watch(processor.run(S.options(provider))));
      yield* TestClock.adjust("1 second");
      yield* processor.close("shutdown");
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a lifecycle close during the backoff stops the retry, and the message is recomputed", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], answer);
      const messages: Array<string> = [];
      const seen = yield* S.played(processor.run(S.options(provider)), (event) => {
        if (event._tag !== "RetryScheduled") return Effect.void;
        messages.push(event.message);
        return Effect.forkDetach(processor.close("shutdown"));
      });
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
      const error = S.errorOf(seen.exit);
      assert.notStrictEqual(error?.message, messages[0]);
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a lifecycle close after the backoff stops the attempt that it started", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], [S.start, S.never]);
      const seen = yield* S.played(processor.run(S.options(provider)), (event) =>
        S.line(event) === "attempt 2 replay" ? Effect.forkDetach(processor.close("shutdown")) : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a closed processor refuses new runs in a clear sentence", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      yield* processor.close("shutdown");
      const seen = yield* S.played(processor.run(S.options(S.scripted(answer))));
      assert.deepStrictEqual(seen.lines, ["end refused lifecycle_closed"]);
      assert.strictEqual(S.errorOf(seen.exit)?.message, "the processor is closed: shutdown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("recovered attempts stay in the record and none of them is the run's final incident", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], answer);
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

  it.effect("a plain tool error earlier is not the cause of a later disconnect", () =>
    Effect.gen(function* () {
      class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {}) {}
      const guard = yield* ToolGuard;
      const bash = guard.mutating("bash", () => Effect.fail(new ToolError()));
      const provider = S.scripted([S.start, S.callReady("bash"), S.wait(10), S.reset]);
      const seen = yield* S.played(
        (yield* StreamProcessor).run(S.options(provider, { tools: [bash], runId: "r" })),
        (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.exit(bash.run(event.calls[0], undefined))
            : Effect.void,
      );
      const [incident] = (yield* S.recordOf("r")).incidents;
      assert.strictEqual(incident?.failure.kind, "transport");
      assert.strictEqual(incident?.facts.tools[0]?.phase, "settled");
      assert.instanceOf(S.errorOf(seen.exit)?.cause, S.ProviderBroke);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("Retry-After is used: the retry waits for it", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rate_limited", status: 429, retry_after_ms: 7_000 })], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const scheduled = seen.events.find((it) => it._tag === "RetryScheduled");
      assert.isAtLeast(scheduled?.delay_ms ?? 0, 7_000);
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("forty thousand deltas leave no more evidence than forty (L11)", () =>
    Effect.gen(function* () {
      const deltas = (count: number) => [S.start, ...Array.from({ length: count }, () => S.text("x")), S.done];
      const processor = yield* StreamProcessor;
      yield* S.played(processor.run(S.options(S.scripted(deltas(40)), { runId: "short" })));
      yield* S.played(processor.run(S.options(S.scripted(deltas(40_000)), { runId: "long" })));
      const size = (record: {
        readonly evidence: { readonly first: ReadonlyArray<unknown>; readonly last: ReadonlyArray<unknown> };
      }) => record.evidence.first.length + record.evidence.last.length;
      const [short, long] = [yield* S.recordOf("short"), yield* S.recordOf("long")];
      assert.strictEqual(size(long), size(short));
      assert.isAtMost(size(long), evidenceFirstMax + evidenceLastMax);
      assert.strictEqual(long.attempts[0]?.facts.counters.parts, 40_002);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a marker in every part leaves bounded evidence too, and what was left out is counted (L11)", () =>
    Effect.gen(function* () {
      const markers = Array.from({ length: 500 }, () => S.done);
      const processor = yield* StreamProcessor;
      yield* S.played(processor.run(S.options(S.scripted([S.start, ...markers, S.text("x")]), { runId: "r" })));
      const { evidence } = yield* S.recordOf("r");
      assert.isAtMost(evidence.first.length + evidence.last.length, evidenceFirstMax + evidenceLastMax);
      assert.isAbove(evidence.omitted, 400);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a 402 is the provider's rejection, never a lost connection (#1468)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rejected", status: 402, reason: "quota" })]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.notMatch(S.errorOf(seen.exit)?.message ?? "", /connection/i);
      assert.match(S.errorOf(seen.exit)?.message ?? "", /rejected/);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a watchdog that fires is a recorded incident with the clock's own name", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.never], answer);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(record.incidents[0]?.failure, { kind: "stalled", clock: "first_progress" });
      assert.isTrue(record.evidence.first.some((it) => it.event === "watchdog" && it.detail === "first_progress"));
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a tool's abort is apart from the stream's: a broken stream does not interrupt a running tool", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const finish = yield* Deferred.make<void>();
      let outcome = "running";
      const bash = guard.mutating("bash", () =>
        Effect.onExit(Deferred.await(finish), (exit) =>
          Effect.sync(() => {
            outcome = exit._tag;
          }),
        ),
      );
      const provider = S.scripted([S.start, S.callReady("bash"), S.wait(1_000), S.reset]);
      const fiber = yield* Effect.forkChild(
        S.watch((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.forkDetach(bash.run(event.calls[0], undefined))
            : Effect.void,
        ),
      );
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(outcome, "running");
      yield* Deferred.succeed(finish, undefined);
      yield* TestClock.adjust("1 second");
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(outcome, "Success");
      assert.strictEqual(seen.lines.at(-1), "end stopped tool_ran");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("its later form, three retries at doubling waits with jitter, is the default budget", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.reset];
      const provider = S.scripted(broken, broken, broken, broken);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      const delays = seen.events.flatMap((it) => (it._tag === "RetryScheduled" ? [it.delay_ms] : []));
      assert.deepStrictEqual(delays, [375, 750, 1_500]);
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("its first form is the strict preset: one retry after a fixed second", () =>
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
});
