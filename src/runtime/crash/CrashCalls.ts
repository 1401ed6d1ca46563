/**
 * Says what a crash, and a person's word after it, make of the calls of a run.
 */
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import * as Facts from "../../facts/Facts.ts";
import { atMost } from "../../facts/Growth.ts";
import * as Orphan from "../../recorder/Orphan.ts";
import type { AttemptRecord, CallVerdict } from "../../recorder/RecordParts.ts";
import type { Entry, RunRecord } from "../../recorder/RunRecord.ts";

/**
 * Puts on record what the crash makes of the facts: the last response may have been asked for, and every call that was
 * started and has no outcome, in whichever attempt, has one that nobody knows.
 *
 * @param decided the facts that the response is decided on; an incident may know more of it than its attempts
 */
export const lostOutcomes = (record: RunRecord, decided: AttemptFacts): ReadonlyArray<Entry> => {
  const response = Orphan.lastResponse(record);
  return record.attempts.flatMap((it): ReadonlyArray<Entry> => {
    const crashed = Orphan.afterCrash(it.facts);
    const facts = !response.includes(it)
      ? { ...crashed, delivery: it.facts.delivery }
      : response.length === 1
        ? decided
        : crashed;
    return atMost(facts, it.facts) ? [] : [raised(it, facts)];
  });
};

/** Settles every call of the last response whose outcome nobody knows by a person's word. Rows that were folded cannot be. */
export const judged = (record: RunRecord, verdict: CallVerdict): ReadonlyArray<Entry> =>
  Orphan.lastResponse(record).flatMap((it): ReadonlyArray<Entry> => {
    const from = Orphan.afterCrash(it.facts);
    const fold = Facts.make({
      sideEffects: from.side_effects,
      discardable: false,
      boundaries: [],
      guarded: from.side_effects?.guarded === true,
      from,
    });
    const settled = from.tools.filter(
      ({ call, executor, phase }) => executor === "runtime" && phase === "outcome_unknown" && fold.settled(call),
    );
    if (settled.length === 0) return [];
    const { attempt } = it;
    return [
      ...settled.map(({ call, tool }): Entry => ({ _tag: "CallJudged", attempt, call, tool, verdict, by: "person" })),
      raised(it, fold.snapshot()),
    ];
  });

const raised = ({ attempt }: AttemptRecord, facts: AttemptFacts): Entry => ({ _tag: "FactsRaised", attempt, facts });
