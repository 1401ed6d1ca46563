/**
 * Says of one path whether it is up, down or returning, and when it is to be asked next.
 *
 * Pure: each function is given the state, the time in monotonic milliseconds and, where a probe is planned, a jitter between
 * 0 and 1. It returns the same object where nothing changes.
 */
import type { Probed } from "./Path.ts";

/** The first spacing of probes, in milliseconds; it doubles. */
export const probeFirstMs = 250;

/** Longest spacing of probes in the first minute, in milliseconds. */
export const probeSoonMs = 1_000;

/** How long probes come at the short spacing, in milliseconds. */
export const probeSoonForMs = 60_000;

/** Spacing of probes after the first minute, in milliseconds. */
export const probeLateMs = 5_000;

/** The first spacing of runs that are let go in place of a probe, in milliseconds; it doubles. */
export const trialFirstMs = 1_000;

/** Longest spacing of such runs, in milliseconds; also how long one of them is waited for. */
export const trialMaxMs = 15_000;

/** More breaks than this within `massBreakMs` are an outage until a probe says otherwise. */
export const massBreaks = 8;

/** The time in which breaks count together, in milliseconds. */
export const massBreakMs = 1_000;

/** Nothing is planned. */
const never = Number.POSITIVE_INFINITY;

/** What is known of a path. */
export interface PathState {
  readonly state: "up" | "down" | "returning";
  /** When this state began. */
  readonly since: number;
  /** Whether a head or a working probe ever came over it. A path that was never reached is never down. */
  readonly reached: boolean;
  /** Where the schedule of probes began. */
  readonly scheduleAt: number;
  /** How far the schedule has come. */
  readonly tries: number;
  /** Failed probes since the path went down; 0 while an outage is only suspected. */
  readonly probes: number;
  /** When a probe is due, or a run may go in its place; infinite where none is. */
  readonly probeAt: number;
  /** When the last one began. */
  readonly probedAt: number;
  /** A probe is under way. */
  readonly probing: boolean;
  /** A run went in place of a probe, and its outcome is awaited. */
  readonly trying: boolean;
  /** A head has come since the path returned. */
  readonly proven: boolean;
  /** The path went down again before a head had come: it lets one run go at first. */
  readonly relapsed: boolean;
  readonly code: string | undefined;
  /** When connections broke, within the last `massBreakMs`. */
  readonly breaks: ReadonlyArray<number>;
}

/** A path of which nothing is known yet. */
export const unknownPath = (now: number): PathState => ({
  state: "up",
  since: now,
  reached: false,
  scheduleAt: now,
  tries: 0,
  probes: 0,
  probeAt: never,
  probedAt: Number.NEGATIVE_INFINITY,
  probing: false,
  trying: false,
  proven: false,
  relapsed: false,
  code: undefined,
  breaks: [],
});

/** How long until the next probe, or the next run in its place, in milliseconds: 20% more or less than the schedule says. */
const spacing = (state: PathState, canProbe: boolean, now: number, jitter: number): number => {
  const soon = Math.min(probeFirstMs * 2 ** state.tries, probeSoonMs);
  const trial = Math.min(trialFirstMs * 2 ** state.tries, trialMaxMs);
  const probe = now - state.scheduleAt < probeSoonForMs ? soon : probeLateMs;
  return (canProbe ? probe : trial) * (0.8 + 0.4 * jitter);
};

/** The path is down. An outage that no head has interrupted goes on with its schedule. */
const down = (
  state: PathState,
  canProbe: boolean,
  code: string | undefined,
  now: number,
  jitter: number,
): PathState => {
  const relapsed = state.state === "returning" && !state.proven;
  const from = relapsed || state.state === "down" ? state : { ...state, scheduleAt: now, tries: 0, probes: 0 };
  return {
    ...from,
    state: "down",
    since: state.state === "down" ? state.since : now,
    tries: from.tries + 1,
    probes: from.probes + 1,
    probeAt: Math.max(now, (from.tries === 0 ? now : state.probedAt) + spacing(from, canProbe, now, jitter)),
    trying: false,
    proven: false,
    relapsed,
    code: code ?? from.code,
    breaks: [],
  };
};

const returning = (state: PathState, proven: boolean, now: number): PathState => ({
  ...state,
  state: "returning",
  since: now,
  probeAt: never,
  trying: false,
  proven,
  breaks: [],
});

/** The path was reached before this process began. */
export const wasReached = (state: PathState): PathState => (state.reached ? state : { ...state, reached: true });

/** The next probe is due, but for one that was made just now. */
const dueSoon = (state: PathState, now: number): PathState => {
  const probeAt = Math.min(state.probeAt, Math.max(now, state.probedAt + probeFirstMs));
  return probeAt === state.probeAt ? state : { ...state, probeAt };
};

/**
 * Another process has found the path down, or back. That is its own trouble until a probe from here says the same: the path is asked, and
 * stays what it is meanwhile. One that went down again before a head had come keeps its schedule, whoever says that it is back.
 */
export const hinted = (state: PathState, isDown: boolean, now: number): PathState =>
  (state.state === "down") === isDown || (!isDown && state.relapsed) ? state : dueSoon(state, now);

/** A response head has come. Over a path that counts as down it says that a probe is worth while, or that the path is back. */
export const answered = (state: PathState, canProbe: boolean, now: number): PathState => {
  if (state.state === "up") return wasReached(state);
  if (state.state === "returning") return state.proven ? state : { ...state, proven: true };
  if (!canProbe) return returning({ ...state, relapsed: false }, true, now);
  return dueSoon(state, now);
};

/** Somebody wants to know: the next probe is due. */
export const asked = (state: PathState, now: number): PathState =>
  state.probeAt <= now ? state : { ...state, probeAt: now };

/** A probe begins. */
export const probing = (state: PathState, now: number): PathState => ({
  ...state,
  probing: true,
  probedAt: now,
  probeAt: never,
});

/** A probe is over. */
export const probed = (state: PathState, found: Probed, now: number, jitter: number): PathState => {
  if (found._tag === "failed") {
    if (!state.reached) return { ...state, probing: false, probeAt: never, code: found.code ?? state.code };
    return down({ ...state, probing: false }, true, found.code ?? found.reason, now, jitter);
  }
  const reached = { ...state, reached: true, probing: false, probeAt: never };
  return state.state === "down" ? returning(reached, false, now) : reached;
};

/**
 * A connect failed and no probe is to be waited for: the path is returning, or nobody can probe it.
 */
export const unconnected = (
  state: PathState,
  canProbe: boolean,
  code: string | undefined,
  now: number,
  jitter: number,
): PathState => {
  if (!state.reached || (state.state === "down" && canProbe)) return state;
  return down(state, canProbe, code, now, jitter);
};

/** One run goes in place of a probe. Another one goes after the longest spacing, should this one have no outcome until then. */
export const tried = (state: PathState, now: number): PathState => ({
  ...state,
  probedAt: now,
  probeAt: now + trialMaxMs,
  trying: true,
});

/** The run that went in place of a probe is over and says nothing of the path. */
export const undecided = (state: PathState, now: number, jitter: number): PathState =>
  state.state === "down"
    ? {
        ...state,
        trying: false,
        probeAt: Math.max(now, state.probedAt + spacing({ ...state, tries: 0 }, false, now, jitter)),
      }
    : state;

/** A connection broke under a request. */
export const broke = (state: PathState, canProbe: boolean, now: number, jitter: number): PathState => {
  if (state.state === "down") return state;
  const breaks = [...state.breaks.filter((at) => now - at < massBreakMs), now];
  if (breaks.length <= massBreaks || !state.reached) return { ...state, breaks: breaks.slice(-massBreaks) };
  if (!canProbe) return returning(state, false, now);
  if (state.state === "returning" && !state.proven) return down(state, true, undefined, now, jitter);
  return {
    ...state,
    state: "down",
    since: now,
    scheduleAt: now,
    tries: 0,
    probes: 0,
    probeAt: now,
    proven: false,
    relapsed: false,
    code: undefined,
    breaks: [],
  };
};

/** This process has not run for a while: the path is asked at once, and often again. A probe from before is taken for lost. */
export const woke = (state: PathState, now: number): PathState => ({
  ...state,
  scheduleAt: now,
  tries: 0,
  probeAt: now,
  probing: false,
});

/** Nobody waits any more, or nobody has asked for so long that what was known is old. */
export const settled = (state: PathState, now: number): PathState => ({
  ...state,
  state: "up",
  since: now,
  tries: 0,
  probes: 0,
  probeAt: never,
  relapsed: false,
  code: undefined,
});
