/** Records verdicts on calls of unknown outcome. A verdict comes from a person or from the tool's own `verify`. */
import type { AttemptFacts, ToolRow } from "../domain/AttemptFacts.ts";
import { restoreFacts } from "./Orphan.ts";
import type { AttemptRecord, CallVerdict, Entry, VerdictBy } from "./RunRecord.ts";

/** A verdict and its source. */
export interface AttributedVerdict {
  readonly verdict: CallVerdict;
  readonly by: VerdictBy;
}

type Call = Pick<ToolRow, "call" | "tool">;

/**
 * Returns the entries that record a verdict on calls of one attempt.
 *
 * @param facts the attempt's facts with the calls settled; omitted if the record has none
 */
export const makeEntries = (
  attempt: number,
  calls: ReadonlyArray<Call>,
  { by, verdict }: AttributedVerdict,
  facts?: AttemptFacts,
): ReadonlyArray<Entry> => [
  ...calls.map(({ call, tool }): Entry => ({ _tag: "CallJudged", attempt, call, tool, verdict, by })),
  ...(facts === undefined ? [] : [{ _tag: "FactsRaised", attempt, facts } as const]),
];

/** Returns the entries for a verdict on one call of an attempt whose process died. */
export const entriesForOneCall = (
  attempt: number,
  given: Call,
  word: AttributedVerdict,
  facts: AttemptFacts | undefined,
): ReadonlyArray<Entry> => {
  const fold = facts && restoreFacts(facts);
  // If the facts list the call, its tool name is not passed on. It would replace the recorded effect of the call by that of an unknown
  // tool.
  const isKnown = facts?.tools.some(({ call, executor }) => executor === "runtime" && call === given.call);
  fold?.settled(given.call, isKnown ? undefined : given.tool);
  return makeEntries(attempt, [given], word, fold?.snapshot());
};

/**
 * Returns the entries for a verdict on every call of unknown outcome in an attempt whose process died. Skips calls that cannot be settled.
 */
export const entriesForAllCalls = (
  { attempt, facts }: AttemptRecord,
  word: AttributedVerdict,
): ReadonlyArray<Entry> => {
  const fold = restoreFacts(facts);
  const unknown = fold.snapshot().tools.filter((it) => it.executor === "runtime" && it.phase === "outcome_unknown");
  const settled = unknown.filter(({ call }) => fold.settled(call));
  return settled.length === 0 ? [] : makeEntries(attempt, settled, word, fold.snapshot());
};
