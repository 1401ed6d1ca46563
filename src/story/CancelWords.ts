/**
 * Describes the outcome of a cancel: who cancelled the run, or why it was not cancelled.
 */
import { openQuestion, type RunRecord } from "../recorder/RunRecord.ts";
import { endWord, isCancelled } from "./RunStatus.ts";
import { unknownWords } from "./UnknownOutcomes.ts";

/** Outcome of a cancel, as `RunCancel` returns it. */
export interface CancelTold {
  readonly outcome: "ended" | "here" | "forwarded" | "unowned" | "pending" | "unreachable";
  /** The process that owned the run, if it was another one. */
  readonly driver: string | undefined;
  readonly record: RunRecord;
}

/** Describes the outcome of a cancel in a few sentences. */
export const cancelWords = ({ driver, outcome, record }: CancelTold): string => {
  const its = endOf(record);
  switch (outcome) {
    case "ended":
      return `The run had already ended: ${its}. Nothing changed.`;
    case "here":
      return `The process that you asked owns the run and cancels it. ${currentState(record)}`;
    case "forwarded":
      return `Forwarded to the process that owns the run (${driver ?? "unknown"}), which cancels it. ${currentState(record)}`;
    case "unowned":
      return `No process owned the run${driver === undefined ? "" : ` (${driver} is gone)`}, so the cancel was carried out in the store. No further request is sent for it. ${currentState(record)}`;
    case "pending":
      return `${driver ?? "A process"} owns the run and has not answered yet. The cancel stays pending for an hour. The process carries it out when it resumes, and any process that takes the run over treats it as cancelled.`;
    case "unreachable":
      return "Another process owns the run, and this store cannot notify it. Nothing changed.";
  }
};

const currentState = (record: RunRecord): string => {
  if (record.end === undefined)
    return openQuestion(record) === undefined
      ? "Its end is not on record yet."
      : "Its end is not on record yet, and its question is still open.";
  return record.end.reason === "user_cancelled" || isCancelled(record)
    ? `It has ended: ${endOf(record)}.`
    : `It ended before the cancel took effect: ${endOf(record)}.`;
};

const endOf = (record: RunRecord): string => {
  if (record.end === undefined) return "no outcome is on record";
  const unknown = unknownWords(record);
  return `${endWord(record, record.end)}${unknown === undefined ? "" : `; ${unknown}`}`;
};
