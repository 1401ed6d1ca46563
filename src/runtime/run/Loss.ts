/**
 * Says when a run is no longer this process's to write, and what of it goes on all the same: the text that its caller has begun to receive,
 * where nobody else can show it.
 *
 * No call of such a run is handed over, nothing is asked for again, no question is put, and it is not completed here: its end is the other
 * process's word. It stops at the end of its response.
 */
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { BoundedRecorder } from "../../recorder/BoundedRecorder.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { type Entry, flowedOn } from "../../recorder/RunRecord.ts";
import type { Stopper } from "../contract/InterruptSignature.ts";
import type { LedgerAttempt, NamedCall } from "../tools/ToolLedger.ts";

/** Why a run is not this process's to write: another process drives it, or its id was another run's from the start. */
export type Loss = "taken_over" | "refused";

/** What a refusal says of the run. A run whose record is gone (its file was replaced, its row damaged) is no other process's. */
export const losses: ReadonlyMap<RecorderError["reason"], Loss> = new Map([
  ["fenced", "taken_over"],
  ["owned", "taken_over"],
  ["run_ended", "taken_over"],
  ["run_exists", "refused"],
]);

/** What the log says of it. */
export const lossSentences = {
  taken_over: "another process has taken this run over; nothing more of it starts here",
  refused: "the run's id belongs to another run on record; it stops here",
} as const;

/** An attempt that reads. Facts count a part before its write is taken; only the flow knows what has left. */
interface FlowingAttempt {
  readonly facts: { readonly snapshot: () => AttemptFacts };
  readonly flow: { readonly hasShown: boolean };
}

/** A run in the step in which it is lost. */
interface LostRun {
  readonly options: { readonly flowsOn?: () => boolean };
  readonly stopper: Stopper | undefined;
  readonly isAway: boolean;
  readonly response: { readonly live: FlowingAttempt | undefined };
  readonly ledger: { readonly ended: boolean };
}

/** Whether a caller is receiving the response, or has all of it, and no other process can show it. */
export const isFlowing = ({ isAway, ledger, options, response: { live }, stopper }: LostRun): boolean => {
  if (stopper !== undefined || isAway || options.flowsOn?.() !== true) return false;
  if (live === undefined) return ledger.ended;
  return live.flow.hasShown && callsNothing(live.facts.snapshot());
};

/** Whether an attempt has neither handed a call over, nor seen one run at its provider: one of a kind that is not known may be the caller's. */
const callsNothing = ({ counters, tools }: AttemptFacts): boolean =>
  counters.rows_folded === undefined && tools.length === 0;

/** Whether parts of a run that flows on may be handed over. At its first call it stops. */
export const goesOn = (
  run: { readonly flowsNoMore: () => void; readonly stop: (by: Stopper) => void },
  { facts }: LedgerAttempt,
  calls: ReadonlyArray<NamedCall>,
): boolean => {
  if (calls.length === 0 && callsNothing(facts.snapshot())) return true;
  // Before the stop, in whose step what is held may be decided on: the call came with the marker of its response.
  run.flowsNoMore();
  run.stop("lifecycle");
  return false;
};

/** A run whose response has gone on to its end. */
interface FlownRun {
  readonly runId: string;
  readonly elapsedMs: number;
  readonly services: Context.Context<never>;
  readonly shared: { readonly recorder: Pick<BoundedRecorder, "write"> };
}

/** Says so in the log, and by a note on the run's record where the process that has the run has ended it. Nothing waits for that. */
export const notes = ({ elapsedMs, runId, services, shared }: FlownRun, attempt: number): void => {
  const evidence = { at_ms: elapsedMs, attempt, event: "end", detail: flowedOn } as const;
  const entry: Entry = { _tag: "EvidenceNoted", evidence };
  const said = Effect.matchEffect(shared.recorder.write(runId, [entry]), {
    onSuccess: () => Effect.logInfo(sentence),
    onFailure: ({ reason }) => Effect.annotateLogs(Effect.logWarning(sentence), { not_noted: reason }),
  });
  Effect.runForkWith(services)(Effect.annotateLogs(said, { run_id: runId }));
};

const sentence = "another process has taken this run over; its response went on to its end here";
