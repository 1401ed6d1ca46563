/**
 * Finds the tools of a run that started and may have changed something, but whose outcome is not on record.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { RunRecord } from "../recorder/RunRecord.ts";
import { isCancelled, isOutcomeOpen } from "./RunStatus.ts";

/** Stands for calls whose tool is not named on record. */
const unnamed = "a tool";

/**
 * Lists the tools with an unknown outcome, each once, oldest first. If no attempt broke, a tool of the last attempt that is still running
 * is not listed, because a response can end before its tools do.
 */
export const unknownOutcomes = (record: RunRecord): ReadonlyArray<string> => {
  const { attempts, end, incidents, state } = record;
  const over = state === "live" ? attempts.slice(0, -1) : attempts;
  const isUnbroken = end?.state === "completed" && !incidents.some(({ attempt }) => attempt >= end.attempts);
  const last = isUnbroken && !isCancelled(record) ? attempts.at(-1) : undefined;
  const rows = over.flatMap((attempt) =>
    attempt.facts.tools.filter((row) => mayHaveChanged(row) && !(attempt === last && row.phase === "dispatched")),
  );
  return [...new Set(rows.map(({ tool }) => (tool === "" ? unnamed : tool)))];
};

/** Formats the unknown outcomes as a sentence without a full stop; undefined if there are none. */
export const unknownWords = (record: RunRecord): string | undefined => {
  const tools = unknownOutcomes(record);
  if (tools.length === 0) return undefined;
  return `the outcome of ${tools.length === 1 ? "" : `${tools.slice(0, -1).join(", ")} and `}${tools.at(-1)} is not known`;
};

const mayHaveChanged = (row: ToolRow): boolean => isOutcomeOpen(row) && row.effect !== "read_only";
