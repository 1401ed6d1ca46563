/**
 * Says in plain words what the page shows: states, modes, facts, phases, choices, times and counts.
 */
import type { AttemptFacts, ToolPhase } from "../../domain/AttemptFacts.ts";
import type { Action, Choice } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { Evidence, IncidentStatus } from "../../domain/RunIncident.ts";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { AttemptRecord, RunRecord } from "../../recorder/RunRecord.ts";

/** How something stands, by colour: `quiet`, `run`, `good`, `ask` or `bad`. */
export type Tone = "quiet" | "run" | "good" | "ask" | "bad";

/** How a run stands, in a word with its mark and colour. */
export interface Standing {
  readonly word: string;
  readonly mark: string;
  readonly tone: Tone;
}

/** How a run stands. */
export const standing = ({ end, incidents, parked, state }: RunRecord): Standing => {
  if (end?.state === "completed") {
    return incidents.some(({ status }) => status === "recovered")
      ? { word: "recovered", mark: "✓", tone: "good" }
      : { word: "completed", mark: "✓", tone: "quiet" };
  }
  if (end?.state === "stopped") return { word: "stopped", mark: "■", tone: "bad" };
  if (state === "asking") return { word: "asks you", mark: "?", tone: "ask" };
  if (state === "parked") {
    return { word: parked === "interrupted" ? "interrupted" : "waits to resume", mark: "‖", tone: "ask" };
  }
  return { word: "running", mark: "▸", tone: "run" };
};

const modes: Readonly<Record<AttemptMode, string>> = {
  first: "the first request",
  replay: "the same request once more",
  continue: "goes on from what is settled",
  resume: "the same response from where it broke",
};

/** What an attempt sent. */
export const sent = ({ mode, request }: AttemptRecord): string =>
  mode === "replay" && request === "continue" ? "the same continuation once more" : modes[mode];

/** How an automatic retry goes on. */
export const retries: Readonly<Record<AttemptMode, string>> = {
  first: "send it",
  replay: "send it again",
  continue: "go on from what is settled",
  resume: "pick the answer up where it broke",
};

/** What an action means. */
export const actions: Readonly<Record<Action, { readonly word: string; readonly tone: Tone }>> = {
  auto_retry_once: { word: "retry by itself", tone: "good" },
  ask_user: { word: "ask a person", tone: "ask" },
  do_not_retry: { word: "do not retry", tone: "bad" },
};

/** What an answer does. */
export const choices: Readonly<Record<Choice, { readonly title: string; readonly does: string }>> = {
  retry: { title: "Retry", does: "Ask again from the start; what was shown is withdrawn." },
  continue: { title: "Continue", does: "Go on from what is settled; open calls are closed as not run or unknown." },
  it_ran: { title: "It ran", does: "The tool did its work: go on from there." },
  it_did_not_run: { title: "It did not run", does: "The tool did nothing: go on without it." },
  accept: { title: "Accept", does: "Keep the part of the answer that is there, and end." },
  stop: { title: "Stop", does: "End the run." },
};

/** What became of a decision. */
export const statuses: Readonly<Record<IncidentStatus, string>> = {
  open: "The decision has not been carried out yet.",
  acted_on: "It was carried out.",
  recovered: "It was carried out, and a later attempt completed the run.",
  superseded: "A newer decision came before it was carried out.",
  late: "It was found out after the run had gone on; nothing follows from it.",
  final: "It ended the run.",
};

/** How far a call got. */
export const phases: Readonly<Record<ToolPhase, string>> = {
  input_started: "being written",
  input_complete: "written",
  handed_over: "handed over",
  dispatched: "started",
  outcome_unknown: "outcome unknown",
  settled: "has run",
};

/** What a tool may do. */
export const effects: Readonly<Record<ToolEffect, string>> = {
  read_only: "only reads",
  mutating: "changes something",
  unknown: "unknown effects",
};

const events: Readonly<Record<Evidence["event"], string>> = {
  attempt_started: "attempt started",
  delivery: "request",
  progress: "answer",
  shown: "shown",
  call: "call",
  terminal_candidate: "end marker",
  watchdog: "clock ran out",
  suspended: "machine slept",
  source_ended: "stream ended",
  failure: "broke",
  abandoned: "left behind",
  late_part_refused: "late part refused",
  late_settle: "tool settled late",
  decision: "decision",
  answer: "answered",
  cancel: "cancelled",
  close: "session closed",
  end: "run ended",
};

/** What a record of evidence says, without its detail. */
export const event = (it: Evidence): string => events[it.event];

/** What a failure is called: its kind, and which clock, reason, code or status. Everything but the kind came from outside. */
export const failure = (it: Failure): string =>
  [
    it.kind,
    "clock" in it ? it.clock : undefined,
    "reason" in it ? it.reason : undefined,
    "by" in it ? `by ${it.by}` : undefined,
    "operation" in it ? it.operation : undefined,
    it.code,
    it.status,
  ]
    .filter((word) => word !== undefined)
    .join(" · ");

/** Counts of an attempt: lengths, never text. */
export const counts = ({ counters, tools }: AttemptFacts): ReadonlyArray<string> => [
  ...(counters.parts > 0 ? [`${grouped(counters.parts)} parts`] : []),
  ...(counters.bytes > 0 ? [`${grouped(counters.bytes)} bytes`] : []),
  ...(counters.characters > 0 ? [`${grouped(counters.characters)} characters`] : []),
  ...(counters.input_tokens === undefined ? [] : [`${grouped(counters.input_tokens)} tokens in`]),
  ...(counters.output_tokens === undefined ? [] : [`${grouped(counters.output_tokens)} tokens out`]),
  ...(tools.length === 0 ? ["no tool called"] : [`${tools.length} ${tools.length === 1 ? "call" : "calls"}`]),
  ...(counters.suspended_ms === undefined ? [] : [`machine slept ${lasting(counters.suspended_ms)}`]),
];

/** A number with its thousands apart. */
export const grouped = (count: number): string => String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** A duration: `375 ms`, `4.2 s`, `3 min 10 s`, `5 h 2 min`, `40 d`. */
export const lasting = (ms: number): string => {
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < minute) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min ${Math.floor((ms % minute) / second)} s`;
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h ${Math.floor((ms % hour) / minute)} min`;
  return `${Math.floor(ms / day)} d`;
};

/**
 * How long ago something was, or how soon it will be, in one unit.
 *
 * @param at wall clock, milliseconds since the epoch
 * @param now wall clock, milliseconds since the epoch
 */
export const relative = (at: number, now: number): string => {
  const ms = Math.abs(now - at);
  const rough = (unit: number, name: string) => `${Math.floor(ms / unit)} ${name}`;
  if (ms < 2 * second) return "now";
  const amount =
    ms < minute
      ? rough(second, "s")
      : ms < hour
        ? rough(minute, "min")
        : ms < 2 * day
          ? rough(hour, "h")
          : rough(day, "d");
  return now >= at ? `${amount} ago` : `in ${amount}`;
};

/** A moment in UTC: `2026-11-22 01:57:22 UTC`. A time that no calendar has is told as a number. */
export const moment = (at: number): string =>
  at <= latest ? `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC` : `${at} ms`;

/** Last moment of the calendar of ECMAScript, in milliseconds since the epoch (ECMA-262, 21.4.1.1). */
const latest = 8.64e15;
