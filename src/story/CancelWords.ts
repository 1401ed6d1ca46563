/**
 * Describes the outcome of a cancel: who cancelled the run, or why it was not cancelled.
 */
import { openQuestion, type RunRecord } from "../recorder/RunRecord.ts";
import { endWord, isCancelled } from "./RunStatus.ts";
import { unknownWords } from "./UnknownOutcomes.ts";

/** Outcome of a cancel, as `RunCancel` returns it. */
export interface CancelTold {
  readonly outcome: "ended" | "here" | "forwarded" | "unowned" | "pending" | "unreachable";
  /** The process that drove the run, if it was another one. */
  readonly driver: string | undefined;
  readonly record: RunRecord;
}

/** Describes a cancel in one or two sentences. */
export const cancelWords = ({ driver, outcome, record }: CancelTold): string => {
  const its = endOf(record);
  switch (outcome) {
    case "ended":
      return `The run had ended before: ${its}. Nothing was changed.`;
    case "here":
      return `Cancelled by the process that you asked, which drives the run. ${now(record)}`;
    case "forwarded":
      return `The process that drives the run (${driver ?? "unknown"}) was told, and cancels it. ${now(record)}`;
    case "unowned":
      return `No process drove the run any more${driver === undefined ? "" : ` (${driver} is gone)`}: it was ended on record, and nothing of it is sent again. ${now(record)}`;
    case "pending":
      return `${driver ?? "A process"} has the run and has not answered yet. The cancel stands for an hour: that process takes it when it goes on, and whoever decides the run in its place decides it as cancelled.`;
    case "unreachable":
      return "Another process drives the run, and this store has no way to tell it. Nothing was changed.";
  }
};

const now = (record: RunRecord): string => {
  if (record.end === undefined)
    return openQuestion(record) === undefined
      ? "Its end is not on record yet."
      : "Its end is not on record yet, and its question is still open.";
  return record.end.reason === "user_cancelled" || isCancelled(record)
    ? `It has ended: ${endOf(record)}.`
    : `It ended first: ${endOf(record)}.`;
};

const endOf = (record: RunRecord): string => {
  if (record.end === undefined) return "without a word";
  const unknown = unknownWords(record);
  return `${endWord(record, record.end)}${unknown === undefined ? "" : `; ${unknown}`}`;
};
