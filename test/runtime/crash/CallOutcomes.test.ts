/**
 * A run that was complete before its tools: the next process learns the outcomes of its calls.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CallOutcomes from "../../../src/runtime/crash/CallOutcomes.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** Three calls in a whole response: one settles, one hangs when its process dies, one never starts. */
const completed = (verify: ToolGuard.Verify | undefined) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const guard = yield* ToolGuard;
    const quick = guard.mutating("quick", () => Effect.succeed("done"));
    const hanging = guard.mutating("hanging", () => Effect.never, verify === undefined ? {} : { verify });
    const late = guard.mutating("late", () => Effect.die("it ran"));
    const script = [S.start, S.callReady("quick"), S.callReady("hanging", 1), S.callReady("late", 2), S.done];
    const tools = [quick, hanging, late];
    yield* S.played(processor.run(S.options(S.scripted(script), { runId: "r", tools })));
    const call = (ordinal: number) => ({ run_id: "r", attempt: 1, call: `0.${ordinal}` });
    yield* quick.run(call(0), undefined);
    yield* Effect.forkDetach(hanging.run(call(1), undefined), { startImmediately: true });
    yield* Effect.yieldNow;
    assert.strictEqual((yield* S.recordOf("r")).state, "ended");
    return tools;
  });

const outcomes = (calls: ReadonlyArray<{ readonly tool: string; readonly outcome: string }>) =>
  Object.fromEntries(calls.map(({ outcome, tool }) => [tool, outcome]));

describe("The outcomes of calls of a run that had ended before them", () => {
  it.effect("are on record: settled, unknown, not run", () =>
    Effect.gen(function* () {
      const tools = yield* completed(undefined);
      const calls = yield* CallOutcomes.of("r", tools);
      assert.deepStrictEqual(outcomes(calls), { quick: "settled", hanging: "unknown", late: "not_run" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("come from a tool that can verify them, and are recorded", () =>
    Effect.gen(function* () {
      const tools = yield* completed(() => Effect.succeed("it_ran"));
      assert.strictEqual(outcomes(yield* CallOutcomes.of("r", tools)).hanging, "it_ran");
      const record = yield* S.recordOf("r");
      assert.deepInclude(record.calls[1], { verdict: "it_ran", verdict_by: "verify" });
      assert.deepInclude(record.attempts[0]?.facts.tools[1], { phase: "settled", effect: "mutating" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("are accepted from a person once, and only for a call of unknown outcome", () =>
    Effect.gen(function* () {
      yield* completed(undefined);
      const of = (ordinal: number) => ({ attempt: 1, call: `0.${ordinal}` });
      assert.isTrue(yield* CallOutcomes.settle("r", of(1), "it_did_not_run"));
      const { attempts } = yield* S.recordOf("r");
      assert.deepInclude(attempts[0]?.facts.tools[1], { phase: "settled", effect: "mutating" });
      assert.isFalse(yield* CallOutcomes.settle("r", of(1), "it_ran"));
      assert.isFalse(yield* CallOutcomes.settle("r", of(0), "it_did_not_run"));
      assert.isFalse(yield* CallOutcomes.settle("nobody", of(0), "it_ran"));
      assert.strictEqual(outcomes(yield* CallOutcomes.of("r")).hanging, "it_did_not_run");
      assert.strictEqual((yield* (yield* RunRecorder).runs()).length, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});
