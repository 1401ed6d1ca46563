/**
 * Says in one word how a run stands.
 */
import type { RunRecord } from "../recorder/RunRecord.ts";
import type { Tone } from "./Words.ts";

/** How a run stands. `orphan`: its process is gone, and what that means is not decided. */
export type RunStatus = "asking" | "orphan" | "parked" | "interrupted" | "live" | "recovered" | "completed" | "stopped";

/** The word, the mark and the colour of a status, and the title of the end of its story. */
export const runStatuses: Readonly<
  Record<RunStatus, { readonly word: string; readonly mark: string; readonly tone: Tone; readonly title: string }>
> = {
  asking: { word: "asks you", mark: "?", tone: "ask", title: "It waits for your answer" },
  orphan: { word: "orphan", mark: "!", tone: "bad", title: "No process drives it" },
  parked: { word: "waiting", mark: "‖", tone: "ask", title: "It waits to be taken up" },
  interrupted: { word: "interrupted", mark: "‖", tone: "ask", title: "It waits to be taken up" },
  live: { word: "running", mark: "▸", tone: "run", title: "It is running" },
  recovered: { word: "recovered", mark: "✓", tone: "good", title: "The end" },
  completed: { word: "completed", mark: "✓", tone: "quiet", title: "The end" },
  stopped: { word: "stopped", mark: "■", tone: "bad", title: "The end" },
};

const none: ReadonlySet<string> = new Set();

/**
 * How a run stands.
 *
 * @param orphans ids of runs that no process drives and nothing has decided, where they were looked for
 */
export const statusOf = (record: RunRecord, orphans: ReadonlySet<string> = none): RunStatus => {
  if (record.end?.state === "stopped") return "stopped";
  if (record.end !== undefined) return hasRecovered(record) ? "recovered" : "completed";
  if (record.state === "asking") return "asking";
  if (orphans.has(record.run_id)) return "orphan";
  if (record.state !== "parked") return "live";
  return record.parked === "interrupted" ? "interrupted" : "parked";
};

/** Whether a run broke and was completed all the same. */
export const hasRecovered = ({ end, incidents }: RunRecord): boolean =>
  end?.state === "completed" && incidents.some(({ status }) => status === "recovered");
