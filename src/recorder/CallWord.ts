/**
 * Puts a word on calls whose outcome is not known: that of a person, or of the tool's own `verify`.
 */
import type { AttemptFacts, ToolRow } from "../domain/AttemptFacts.ts";
import { restored } from "./Orphan.ts";
import type { AttemptRecord, CallVerdict, Entry, VerdictBy } from "./RunRecord.ts";

/** What is said of calls, and whose word it is. */
export interface CallWord {
  readonly verdict: CallVerdict;
  readonly by: VerdictBy;
}

type Call = Pick<ToolRow, "call" | "tool">;

/**
 * Puts a word on calls of one attempt on record.
 *
 * @param facts the attempt's, in which the word has settled the calls; left out where the record has none
 */
export const entries = (
  attempt: number,
  calls: ReadonlyArray<Call>,
  { by, verdict }: CallWord,
  facts?: AttemptFacts,
): ReadonlyArray<Entry> => [
  ...calls.map(({ call, tool }): Entry => ({ _tag: "CallJudged", attempt, call, tool, verdict, by })),
  ...(facts === undefined ? [] : [{ _tag: "FactsRaised", attempt, facts } as const]),
];

/** Puts a word on one call of a process that is gone. */
export const onOne = (
  attempt: number,
  given: Call,
  word: CallWord,
  facts: AttemptFacts | undefined,
): ReadonlyArray<Entry> => {
  const fold = facts && restored(facts);
  fold?.settled(given.call, given.tool);
  return entries(attempt, [given], word, fold?.snapshot());
};

/** Puts a word on every call of unknown outcome of an attempt whose process is gone. A folded row takes none. */
export const onAll = ({ attempt, facts }: AttemptRecord, word: CallWord): ReadonlyArray<Entry> => {
  const fold = restored(facts);
  const unknown = fold.snapshot().tools.filter((it) => it.executor === "runtime" && it.phase === "outcome_unknown");
  const settled = unknown.filter(({ call }) => fold.settled(call));
  return settled.length === 0 ? [] : entries(attempt, settled, word, fold.snapshot());
};
