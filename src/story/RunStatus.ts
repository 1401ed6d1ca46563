/**
 * Reduces the state of a run to one word.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { Evidence, RunEnd, RunIncident } from "../domain/RunIncident.ts";
import type { RunRecord } from "../recorder/RunRecord.ts";
import type { Tone } from "./Words.ts";

/** Status of a run. `orphan`: the run's process is gone, and no decision has been taken since. */
export type RunStatus =
  | "asking"
  | "orphan"
  | "parked"
  | "interrupted"
  | "live"
  | "recovered"
  | "completed"
  | "cancelled"
  | "stopped";

/** Word, symbol and colour of a status, and the title of the end of its story. */
export const runStatuses: Readonly<
  Record<RunStatus, { readonly word: string; readonly mark: string; readonly tone: Tone; readonly title: string }>
> = {
  asking: { word: "asks you", mark: "?", tone: "ask", title: "It waits for your answer" },
  orphan: { word: "orphan", mark: "!", tone: "bad", title: "No process owns it" },
  parked: { word: "waiting", mark: "‖", tone: "ask", title: "It waits to be taken up" },
  interrupted: { word: "interrupted", mark: "‖", tone: "ask", title: "It waits to be taken up" },
  live: { word: "running", mark: "▸", tone: "run", title: "It is running" },
  recovered: { word: "recovered", mark: "✓", tone: "good", title: "The end" },
  completed: { word: "completed", mark: "✓", tone: "quiet", title: "The end" },
  cancelled: { word: "cancelled", mark: "■", tone: "bad", title: "The end" },
  stopped: { word: "stopped", mark: "■", tone: "bad", title: "The end" },
};

const none: ReadonlySet<string> = new Set();

/**
 * Returns the status of a run.
 *
 * @param orphans ids of undecided runs without an owner, if they were looked up
 */
export const statusOf = (record: RunRecord, orphans: ReadonlySet<string> = none): RunStatus => {
  if (record.end?.state === "stopped") return "stopped";
  if (isCancelled(record)) return "cancelled";
  if (record.end !== undefined) return hasRecovered(record) ? "recovered" : "completed";
  if (record.state === "asking") return "asking";
  if (orphans.has(record.run_id)) return "orphan";
  if (record.state !== "parked") return "live";
  return record.parked === "interrupted" ? "interrupted" : "parked";
};

/** Returns true if an attempt of the run broke and a later attempt completed it. */
export const hasRecovered = (record: RunRecord): boolean => {
  const { end, incidents } = record;
  if (end?.state !== "completed" || isCancelled(record)) return false;
  return incidents.some((incident) => incidentStatus(incident, end) === "recovered");
};

/** Returns the status of an incident. Earlier releases also stored `recovered` for the attempt that completed the run. */
export const incidentStatus = ({ attempt, status }: RunIncident, end: RunEnd | undefined): RunIncident["status"] =>
  status === "recovered" && end !== undefined && attempt >= end.attempts ? "final" : status;

/** Returns true for a runtime call that started and did not report its outcome. */
export const isOutcomeOpen = ({ executor, phase }: ToolRow): boolean =>
  executor === "runtime" && (phase === "dispatched" || phase === "outcome_unknown");

/**
 * Returns true if the user cancelled the run after its response was complete, while a tool of its last attempt ran. Without a running tool
 * a cancel at that point changes nothing, for example if a client closes its socket after the end marker.
 */
export const isCancelled = ({ attempts, end, evidence, incidents }: RunRecord): boolean => {
  if (end?.state !== "completed") return false;
  if (attempts.at(-1)?.facts.tools.some(isOutcomeOpen) !== true) return false;
  // A cancel after the end of the run has no incident, so only the evidence shows who cancelled.
  return [...evidence.first, ...evidence.last].some(isUsersCancel) || incidents.some(isByUser);
};

const isUsersCancel = ({ detail, event }: Evidence): boolean => event === "cancel" && detail === "user";

const isByUser = ({ failure, run }: RunIncident): boolean =>
  run.user_cancelled || (failure.kind === "cancelled" && failure.by === "user");

/** Returns the end of a run, for example `completed (tool_use)`. */
export const endWord = (record: RunRecord, end: RunEnd): string =>
  isCancelled(record) ? "cancelled (user_cancelled)" : `${end.state} (${end.reason})`;
