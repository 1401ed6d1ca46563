/**
 * Decides whether one path is up, down or returning, and when it is probed next.
 *
 * Pure: each function takes the state, the time in monotonic milliseconds and, if it plans a probe, a jitter between 0 and 1. It returns
 * the same object if nothing changes.
 */
import type { Probed } from "./Path.ts";

/** First interval of probes, in milliseconds. Each further interval is twice as long, up to `probeSoonMs`. */
export const probeFirstMs = 250;

/** Maximum interval of probes in the first minute, in milliseconds. */
export const probeSoonMs = 1_000;

/** Time from the start of the schedule for which probes use the short intervals, in milliseconds. */
export const probeSoonForMs = 60_000;

/** Interval of probes after the first minute, in milliseconds. */
export const probeLateMs = 5_000;

/**
 * First interval between runs that are released in place of a probe, in milliseconds. Each further interval is twice as long, up to
 * `trialMaxMs`.
 */
export const trialFirstMs = 1_000;

/**
 * Maximum interval between runs that are released in place of a probe, in milliseconds. It is also the maximum wait for the outcome of one
 * such run.
 */
export const trialMaxMs = 15_000;

/** Maximum breaks within `massBreakMs`. More breaks count as an outage until a probe succeeds. */
export const massBreaks = 8;

/** Time within which breaks count together, in milliseconds. */
export const massBreakMs = 1_000;

const never = Number.POSITIVE_INFINITY;

/** State of a path. Times are in monotonic milliseconds. */
export interface PathState {
  readonly state: "up" | "down" | "returning";
  readonly since: number;
  /** True if a response head or a successful probe ever came over the path. A path that was never reached is never down. */
  readonly reached: boolean;
  /** Time at which the schedule of probes began. */
  readonly scheduleAt: number;
  /** Number of failures since the schedule began. Each doubles the interval until the next probe, up to its maximum. */
  readonly tries: number;
  /** Failed probes since the path went down; 0 while an outage is only suspected. */
  readonly probes: number;
  /** Time at which a probe is due, or a run may be sent in its place; infinite if none is planned. */
  readonly probeAt: number;
  /** Time at which the last probe or trial began. */
  readonly probedAt: number;
  readonly probing: boolean;
  /** True if a run was sent in place of a probe and its outcome is pending. */
  readonly trying: boolean;
  /** True if a response head has arrived since the path returned. */
  readonly proven: boolean;
  /** True if the path went down again before a response head had arrived. At its next return it releases only one run at first. */
  readonly relapsed: boolean;
  readonly code: string | undefined;
  /** Times at which connections broke, within the last `massBreakMs`. */
  readonly breaks: ReadonlyArray<number>;
}

/** Returns the state of a path about which nothing is known yet. */
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

/** Returns the time until the next probe, or the next run in its place, in milliseconds. Jitter makes it up to 20% shorter or longer. */
const spacing = (state: PathState, canProbe: boolean, now: number, jitter: number): number => {
  const soon = Math.min(probeFirstMs * 2 ** state.tries, probeSoonMs);
  const trial = Math.min(trialFirstMs * 2 ** state.tries, trialMaxMs);
  const probe = now - state.scheduleAt < probeSoonForMs ? soon : probeLateMs;
  return (canProbe ? probe : trial) * (0.8 + 0.4 * jitter);
};

/** Marks the path as down. The schedule continues if no response head has arrived since the last outage. */
const takeDown = (
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

const startReturning = (state: PathState, proven: boolean, now: number): PathState => ({
  ...state,
  state: "returning",
  since: now,
  probeAt: never,
  trying: false,
  proven,
  breaks: [],
});

/** Marks the path as reached before this process began. */
export const markReached = (state: PathState): PathState => (state.reached ? state : { ...state, reached: true });

/** Makes the next probe due now or, if the last probe began less than `probeFirstMs` ago, `probeFirstMs` after it began. */
const withProbeSoon = (state: PathState, now: number): PathState => {
  const probeAt = Math.min(state.probeAt, Math.max(now, state.probedAt + probeFirstMs));
  return probeAt === state.probeAt ? state : { ...state, probeAt };
};

/**
 * Handles another process's report that the path is down or works again. The path keeps its state and is probed soon, because the cause may
 * lie in that process alone. If the path went down again before a response head had arrived, a report that it works again does not change
 * its schedule.
 */
export const applyFinding = (state: PathState, isDown: boolean, now: number): PathState =>
  (state.state === "down") === isDown || (!isDown && state.relapsed) ? state : withProbeSoon(state, now);

/** Records a response head. A path that counts as down is then probed soon or, if it cannot be probed, counts as returning. */
export const recordResponse = (state: PathState, canProbe: boolean, now: number): PathState => {
  if (state.state === "up") return markReached(state);
  if (state.state === "returning") return state.proven ? state : { ...state, proven: true };
  if (!canProbe) return startReturning({ ...state, relapsed: false }, true, now);
  return withProbeSoon(state, now);
};

/** Makes the next probe due, because a caller waits for the result. */
export const requestProbe = (state: PathState, now: number): PathState =>
  state.probeAt <= now ? state : { ...state, probeAt: now };

/** Records that a probe begins. No further probe is due before its result. */
export const startProbe = (state: PathState, now: number): PathState => ({
  ...state,
  probing: true,
  probedAt: now,
  probeAt: never,
});

/** Records the result of a probe. A success marks the path as reached. A failure takes down only a path that was reached before. */
export const recordProbe = (state: PathState, found: Probed, now: number, jitter: number): PathState => {
  if (found._tag === "failed") {
    if (!state.reached) return { ...state, probing: false, probeAt: never, code: found.code ?? state.code };
    return takeDown({ ...state, probing: false }, true, found.code ?? found.reason, now, jitter);
  }
  const reached = { ...state, reached: true, probing: false, probeAt: never };
  return state.state === "down" ? startReturning(reached, false, now) : reached;
};

/** Records a failed connect that no probe will confirm, because the path is returning or cannot be probed. */
export const recordConnectFailure = (
  state: PathState,
  canProbe: boolean,
  code: string | undefined,
  now: number,
  jitter: number,
): PathState => {
  if (!state.reached || (state.state === "down" && canProbe)) return state;
  return takeDown(state, canProbe, code, now, jitter);
};

/** Records that one run sends its request in place of a probe. If it has no outcome within the maximum interval, another run sends one. */
export const startTrial = (state: PathState, now: number): PathState => ({
  ...state,
  probedAt: now,
  probeAt: now + trialMaxMs,
  trying: true,
});

/** Records that the run sent in place of a probe has ended without an outcome for the path. */
export const endTrial = (state: PathState, now: number, jitter: number): PathState =>
  state.state === "down"
    ? {
        ...state,
        trying: false,
        probeAt: Math.max(now, state.probedAt + spacing({ ...state, tries: 0 }, false, now, jitter)),
      }
    : state;

/** Records a connection that broke under a request. */
export const recordBreak = (state: PathState, canProbe: boolean, now: number, jitter: number): PathState => {
  if (state.state === "down") return state;
  const breaks = [...state.breaks.filter((at) => now - at < massBreakMs), now];
  if (breaks.length <= massBreaks || !state.reached) return { ...state, breaks: breaks.slice(-massBreaks) };
  if (!canProbe) return startReturning(state, false, now);
  if (state.state === "returning" && !state.proven) return takeDown(state, true, undefined, now, jitter);
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

/**
 * Restarts the schedule after this process was suspended. The path is probed at once, and often after that. The result of a probe in flight
 * is ignored.
 */
export const restartSchedule = (state: PathState, now: number): PathState => ({
  ...state,
  scheduleAt: now,
  tries: 0,
  probeAt: now,
  probing: false,
});

/** Resets the path to up, because no request waits any more, or because the state is out of date and not needed. */
export const reset = (state: PathState, now: number): PathState => ({
  ...state,
  state: "up",
  since: now,
  tries: 0,
  probes: 0,
  probeAt: never,
  relapsed: false,
  code: undefined,
});
