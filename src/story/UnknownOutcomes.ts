/**
 * Finds the tools of a run that started and may have changed something, but whose outcome is not on record.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { RunRecord } from "../recorder/RunRecord.ts";

/** Whether a call of the runtime started and did not report its outcome. */
export const isOutcomeOpen = ({ executor, phase }: ToolRow): boolean =>
  executor === "runtime" && (phase === "dispatched" || phase === "outcome_unknown");

/** A name for calls whose own names the record has folded. */
const unnamed = "a tool";

/** The tools whose outcome is unknown, each once, oldest first. A tool of the live attempt may still be running. */
export const unknownOutcomes = ({ attempts, state }: RunRecord): ReadonlyArray<string> => {
  const over = state === "live" ? attempts.slice(0, -1) : attempts;
  const rows = over.flatMap(({ facts }) => facts.tools.filter(mayHaveChanged));
  return [...new Set(rows.map(({ tool }) => (tool === "" ? unnamed : tool)))];
};

/** The same as a sentence without a full stop; undefined if there is none. */
export const unknownWords = (record: RunRecord): string | undefined => {
  const tools = unknownOutcomes(record);
  if (tools.length === 0) return undefined;
  return `the outcome of ${tools.length === 1 ? "" : `${tools.slice(0, -1).join(", ")} and `}${tools.at(-1)} is not known`;
};

const mayHaveChanged = (row: ToolRow): boolean => isOutcomeOpen(row) && row.effect !== "read_only";
