/**
 * Determines the outcomes of the calls of a run whose process is gone.
 *
 * A stream often ends before its tools do. The run is then complete on record, and `recover` has nothing to decide. But the program that
 * builds the next request must know which calls ran.
 */
import * as Effect from "effect/Effect";
import { toBounded } from "../../recorder/BoundedRecorder.ts";
import * as CallVerdicts from "../../recorder/CallVerdicts.ts";
import type { CallRecord, CallVerdict, RunRecord, VerdictBy } from "../../recorder/RunRecord.ts";
import { type RecorderError, RunRecorder } from "../../recorder/RunRecorder.ts";
import type { SettledCall } from "../contract/ToolCall.ts";
import { wordOf } from "../recovery/Verify.ts";
import { ToolGuard } from "../tools/ToolGuard.ts";

/**
 * Returns the outcome of every complete call that a run handed over.
 *
 * Use it at boot, before the next request is built, for runs without an owner, including ended runs. A `not_run` call never started, so it
 * may be run. An `unknown` call may have run, so do not run it again until `settle` has recorded a verdict.
 *
 * @param tools the tools of the run. A tool with a `verify` is asked about its calls of unknown outcome first, and its verdicts are
 *   recorded
 */
export const of = (
  runId: string,
  tools: ReadonlyArray<ToolGuard.Tool> = [],
): Effect.Effect<ReadonlyArray<SettledCall>, RecorderError, RunRecorder | ToolGuard> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const { verifierOf } = yield* ToolGuard;
    const record = yield* recorder.run(runId);
    for (const call of record?.calls ?? []) {
      if (record === undefined || outcomeOf(record, call) !== "unknown") continue;
      const verify = tools.map(verifierOf).find((it) => it?.tool === call.tool)?.verify;
      const { attempt, id, tool } = call;
      const verdict = yield* wordOf(verify, { run_id: runId, attempt, call: call.call, id, tool });
      if (verdict !== "unknown") yield* put(record, call, verdict, "verify");
    }
    const now = yield* recorder.run(runId);
    return (now?.calls ?? []).map((it) => ({
      attempt: it.attempt,
      call: it.call,
      id: it.id,
      tool: it.tool,
      outcome: now === undefined ? "unknown" : outcomeOf(now, it),
    }));
  });

/**
 * Records a person's verdict on a call of unknown outcome.
 *
 * @returns true if there was such a call. A call that already has an outcome keeps it
 */
export const settle = (
  runId: string,
  call: Pick<SettledCall, "attempt" | "call">,
  verdict: CallVerdict,
): Effect.Effect<boolean, RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const record = yield* toBounded(yield* RunRecorder).run(runId);
    const known = record?.calls.find((it) => it.attempt === call.attempt && it.call === call.call);
    if (record === undefined || known === undefined || outcomeOf(record, known) !== "unknown") return false;
    yield* put(record, known, verdict, "person");
    return true;
  });

/** Returns the outcome of a call. Another process cannot see running handlers, so a call that started and has not settled is `unknown`. */
const outcomeOf = ({ attempts }: RunRecord, { attempt, call, verdict }: CallRecord): SettledCall["outcome"] => {
  if (verdict !== undefined) return verdict;
  const facts = attempts.find((it) => it.attempt === attempt)?.facts;
  const phase = facts?.tools.find((row) => row.executor === "runtime" && row.call === call)?.phase;
  if (phase === "settled") return "settled";
  const started = phase === undefined || phase === "dispatched" || phase === "outcome_unknown";
  return started || facts?.side_effects?.guarded !== true ? "unknown" : "not_run";
};

const put = (
  record: RunRecord,
  { attempt, call, tool }: CallRecord,
  verdict: CallVerdict,
  by: VerdictBy,
): Effect.Effect<void, RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const facts = record.attempts.find((it) => it.attempt === attempt)?.facts;
    yield* recorder.write(
      record.run_id,
      CallVerdicts.entriesForOneCall(attempt, { call, tool }, { verdict, by }, facts),
    );
  });
