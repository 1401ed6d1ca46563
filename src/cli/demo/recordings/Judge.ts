/**
 * Compares the events that a caller received with the events that `Frames` parses from the recorded bytes.
 */
import { Answers, type RequestLog } from "../../../testing/index.ts";
import { endOf, type Frame, isSameFrame, isWhole } from "./Frames.ts";
import type { Recording } from "./Recordings.ts";
import type { Take } from "./Take.ts";

/** The result that a caller received from one take, that is, from one playback of a recording. */
export interface Heard {
  readonly completed: boolean;
  /** The provider's events that are visible at the end. Withdrawn events are not among them. */
  readonly frames: ReadonlyArray<Pick<Frame, "event" | "data">>;
  readonly decisions: ReadonlyArray<string>;
  readonly log: ReadonlyArray<RequestLog>;
}

/** One take (one playback of a recording), with the faults that the judge found in it. */
export interface RecordingRow {
  readonly file: string;
  readonly protocol: Recording["protocol"];
  readonly kind: Take["kind"];
  /** Bytes of the body before the break. */
  readonly at: number;
  readonly caller: string;
  readonly completed: boolean;
  readonly requests: number;
  readonly decisions: ReadonlyArray<string>;
  /** Number of visible events that are duplicated, invented or out of order. */
  readonly extra: number;
  /** True if a break was taken for the end. */
  readonly false_success: boolean;
  readonly problems: ReadonlyArray<string>;
}

/**
 * Judges an unbroken recording: the server sent the recorded bytes, every event arrived once and unchanged, and the run completed unless
 * the manifest says that the recording is incomplete.
 */
export const judgeWhole = (
  recording: Recording,
  frames: ReadonlyArray<Frame>,
  hash: string,
  reply: Heard,
  found: ReadonlyArray<string>,
): RecordingRow => {
  const expected = expectedEnd(recording);
  const served = reply.log[0]?.sent_hash;
  return makeRow(recording, { kind: "whole", at: 0, caller: { name: "" } }, frames, reply, false, [
    ...found,
    ...(reply.log.length === 1 ? [] : [`expected 1 request, got ${reply.log.length}`]),
    ...(recording.status > 299 || served === hash ? [] : ["the served bytes differ from the recorded ones"]),
    ...(expected === "complete" && !reply.completed
      ? [`not complete: ${reply.decisions.join(", ") || "no decision"}`]
      : []),
    ...(expected === "fails" && reply.completed ? ["complete, although the recording is not"] : []),
    ...(reply.completed ? findMissing(recording, frames, reply) : []),
  ]);
};

/**
 * Judges a broken take. It must never complete from the broken response. If the take completes, the whole recording must be visible once.
 * If it does not, a person was asked, and the visible events must be part of the recording.
 */
export const judgeBroken = (
  recording: Recording,
  take: Take,
  frames: ReadonlyArray<Frame>,
  whole: Heard,
  reply: Heard,
): RecordingRow => {
  const last = reply.log.at(-1);
  const falseSuccess = reply.completed && (reply.log.length < 2 || last?.outcome !== "complete");
  const asked = reply.decisions.some((decision) => decision.startsWith("ask_user"));
  const problems = [
    ...(falseSuccess ? ["reported a broken response as complete"] : []),
    // A stalled take may need more requests: on a busy machine, its short timeout may also abort a healthy response.
    ...(reply.log.length > 2 && take.kind !== "stall" && whole.completed && whole.decisions.length === 0
      ? [`expected at most 2 requests, got ${reply.log.length}`]
      : []),
    ...(reply.decisions.length === 0 ? ["the break had no decision"] : []),
    ...(reply.completed ? findMissing(recording, frames, reply) : []),
    ...(reply.completed && !whole.completed ? ["complete, although the full recording is not"] : []),
    ...(!reply.completed && whole.completed && !asked ? ["neither recovered nor asked"] : []),
    ...(!reply.completed && whole.completed && take.caller.answer === "retry"
      ? [`not recovered although a person answered retry: ${reply.decisions.join(", ")}`]
      : []),
  ];
  return makeRow(recording, take, frames, reply, falseSuccess, problems);
};

type PlayedTake = Pick<Take, "kind" | "at"> & { readonly caller: { readonly name: string } };

const makeRow = (
  { file, protocol }: Recording,
  { at, caller, kind }: PlayedTake,
  frames: ReadonlyArray<Frame>,
  { completed, decisions, frames: visible, log }: Heard,
  false_success: boolean,
  problems: ReadonlyArray<string>,
): RecordingRow => {
  const extra = visible.length - countInOrder(frames, visible);
  return {
    file,
    protocol,
    kind,
    at,
    caller: caller.name,
    completed,
    requests: log.length,
    decisions,
    extra,
    false_success,
    problems: extra === 0 ? problems : [...problems, `${extra} events repeated, changed or out of order`],
  };
};

/** Counts the visible events that match the recording in order, each at most once. */
const countInOrder = (frames: ReadonlyArray<Frame>, visible: Heard["frames"]): number => {
  let next = 0;
  let found = 0;
  for (const event of visible) {
    const at = frames.findIndex((frame, index) => index >= next && isSameFrame(frame, event));
    if (at === -1) continue;
    next = at + 1;
    found += 1;
  }
  return found;
};

/** Returns the problems of a complete run: events that it did not show. */
const findMissing = (
  { protocol }: Recording,
  frames: ReadonlyArray<Frame>,
  { decisions, frames: visible }: Heard,
): ReadonlyArray<string> => {
  const expected = frames.filter(isWhole);
  if (decisions.at(-1) === "do_not_retry already_complete") return findMissingBeforeEnd(protocol, expected, visible);
  const count = expected.length - countInOrder(expected, visible);
  return count === 0 ? [] : [`${count} of ${expected.length} events are missing or changed`];
};

/**
 * Returns the problems of a response that failed at or after its end. It must be shown up to its end, without a gap and including the
 * terminal event.
 */
const findMissingBeforeEnd = (
  protocol: Recording["protocol"],
  frames: ReadonlyArray<Frame>,
  visible: Heard["frames"],
): ReadonlyArray<string> => {
  const end = endOf(protocol, frames, Number.POSITIVE_INFINITY);
  const through = frames.filter((frame) => frame.from <= end).length;
  const gap = visible.findIndex((event, index) => {
    const frame = frames[index];
    return frame === undefined || !isSameFrame(frame, event);
  });
  const kept = gap === -1 ? visible.length : gap;
  return kept >= through ? [] : [`${through - kept} of ${through} events up to the end are missing or changed`];
};

/** Returns the end that the manifest promises. `either`: the manifest is not specific enough, so the decoder decides. */
const expectedEnd = (recording: Recording): "complete" | "fails" | "either" => {
  const { features, protocol, status } = recording;
  if (status < 200 || status > 299) return "fails";
  if (features.includes("several-messages-in-one-file") || recording.finish === undefined) return "either";
  const finish = [recording.finish ?? []].flat().filter((reason) => reason !== null && reason !== "");
  const failed = finish.length === 0 || finish.some((reason) => reason === "failed" || reason === "error");
  if (features.includes("error-event") || recording.terminal === "response.failed") return failed ? "fails" : "either";
  if (!failed) return "complete";
  if (finish.length > 0) return "fails";
  return recording.terminal === null && !Answers.needsCleanEnd(protocol) ? "fails" : "either";
};
