/**
 * Clocks of an attempt with their defaults, in milliseconds. `Infinity` switches a clock off.
 *
 * Any byte resets `silence`, but only progress resets `idle`, because a provider that sends only keep-alives is stalled. The sixth clock,
 * `connect`, belongs to the socket and is part of ProviderClient.
 */
import type * as Duration from "effect/Duration";
import { toMs } from "../../domain/Durations.ts";
import type { ClockName } from "../../domain/Failure.ts";
import type { Provider } from "../../domain/RunFacts.ts";

/** The time limits of one attempt, in milliseconds. */
export interface Clocks {
  /**
   * Maximum time to the first part that makes progress, from the start of the attempt and again from the written request. Includes the wait
   * for the head.
   */
  readonly first_progress: number;
  /** Maximum time between two parts that make progress. */
  readonly idle: number;
  /** Maximum time without any byte. Applies only after this attempt has received two keep-alives (`keepAlivesToArm`). */
  readonly silence: number;
  /** Maximum duration of the whole attempt. This is the caller's own limit: off by default, and a run that exceeds it is never retried. */
  readonly attempt: number;
  /**
   * Maximum duration of the whole run: its attempts and the waits between them, but not open questions or running tools. This is the
   * caller's own limit: off by default, and a run that exceeds it is never retried.
   */
  readonly run: number;
}

/** Clocks that a caller can set, as milliseconds or durations; `false` switches a clock off. */
export type ClockOptions = { readonly [K in keyof Clocks]?: Duration.Input | false };

/** Default of `first_progress` for a model that does not reason. It covers the provider's queue and the processing of the prompt. */
export const firstProgressMs = 180_000;

/** Default of `first_progress` for models that reason or may reason. A limit of 60 s aborted healthy slow models (coder #26010). */
export const firstProgressReasoningMs = 600_000;

/** Default of `idle`. It is longer than any thinking pause that was measured, and short enough for a person to wait. */
export const idleMs = 300_000;

/** Default of `silence`, for a provider that sends keep-alives. */
export const silenceMs = 90_000;

/** Keep-alives that prove that a provider sends them. Without this proof, silence does not prove a stall. */
export const keepAlivesToArm = 2;

/** Idle limit after the terminal marker. Usage may follow the marker, but a socket that stays open must not delay the end. */
export const lingerMs = 10_000;

/**
 * Maximum sleep of the watchdog while it watches anything, in milliseconds. A suspension during a sleep shows only as lateness after the
 * sleep, so only suspensions longer than `suspendLateMs` plus `sweepMs` are always detected.
 */
export const sweepMs = 1_000;

/** Lateness of the watchdog, by the monotonic or the wall clock, above which we assume that this process was suspended, in milliseconds. */
export const suspendLateMs = 2_000;

/** Time after a suspension in which no clock ends an attempt, in milliseconds. Sockets and providers need it to notice the suspension. */
export const suspendGraceMs = 20_000;

/** Time without a byte after which we check whether the path is lost, in milliseconds. */
export const askAfterMs = 10_000;

/** Further silence before each repeated check of the path, in milliseconds. The last value repeats. */
export const askAgainMs: ReadonlyArray<number> = [10_000, 20_000, 40_000, 60_000];

/**
 * A check of the deadlines also covers those due within this time, in milliseconds, so that a deadline that moves needs no wake-up of its
 * own.
 */
export const foresightMs = 500;

/**
 * Path checks happen at multiples of this interval, in milliseconds. A check is late by at most one interval, and many silent attempts
 * share one wake-up.
 */
export const askGridMs = 500;

/** Maximum suspensions of one attempt that are followed by a grace period. The clocks exclude the gap of every suspension. */
export const suspendGracesMax = 32;

/**
 * Lateness of a wake-up after which arrived parts may still be unread, in milliseconds. Clocks are then checked again before they end an
 * attempt.
 */
export const lateMs = 50;

/** Time for reading parts that arrived before a late wake-up, in milliseconds. */
export const catchUpMs = 100;

/** Maximum time for a superseded attempt to close before it is abandoned (L6), in milliseconds. */
export const closeGraceMs = 1_000;

/**
 * Returns the clocks of a run.
 *
 * @param provider the provider; its `reasoning` flag chooses the default of `first_progress`
 * @param streaming false for a response that arrives whole, which has no first progress to wait for
 * @param options the caller's own limits
 */
export const make = (provider: Provider, streaming: boolean, options?: ClockOptions): Clocks => {
  if (options !== undefined) return build(provider, streaming, options);
  return !streaming ? whole : provider.reasoning === false ? plain : reasoning;
};

const build = (provider: Pick<Provider, "reasoning">, streaming: boolean, options: ClockOptions): Clocks => ({
  first_progress: limit(
    options.first_progress,
    streaming ? (provider.reasoning === false ? firstProgressMs : firstProgressReasoningMs) : Number.POSITIVE_INFINITY,
  ),
  idle: limit(options.idle, idleMs),
  silence: limit(options.silence, silenceMs),
  attempt: limit(options.attempt, Number.POSITIVE_INFINITY),
  run: limit(options.run, Number.POSITIVE_INFINITY),
});

/** Doubles one clock, so that a retry after a stall does not end at the same point while the provider processes the same prompt. */
export const doubleClock = (clocks: Clocks, clock: ClockName): Clocks =>
  clock === "connect" ? clocks : { ...clocks, [clock]: clocks[clock] * 2 };

const limit = (option: Duration.Input | false | undefined, byDefault: number): number =>
  option === false ? Number.POSITIVE_INFINITY : option === undefined ? byDefault : toMs(option);

// Shared by all runs that set no clocks.
const whole = build({}, false, {});
const plain = build({ reasoning: false }, true, {});
const reasoning = build({}, true, {});
