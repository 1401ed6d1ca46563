/**
 * Names the clocks of an attempt with their defaults, in milliseconds. `Infinity` is off.
 *
 * Bytes feed `silence`; only progress feeds `idle`: a provider that sends keep-alives for ever is stalled, one that thinks
 * is not. The sixth clock, `connect`, belongs to the socket and lives in ProviderClient.
 */
import type { ClockName } from "../../domain/Failure.ts";
import type { Provider } from "../../domain/RunFacts.ts";

/** The limits of one attempt, in milliseconds. */
export interface Clocks {
  /** From the request written to the first progress, head included. One that is not written yet is waited for as long. */
  readonly first_progress: number;
  /** From progress to progress. */
  readonly idle: number;
  /** Without any byte; armed only by two keep-alives of this attempt (`keepAlivesToArm`). */
  readonly silence: number;
  /** The whole attempt. The caller's own limit: off by default and never retried. */
  readonly attempt: number;
  /**
   * The whole run: its attempts and the waits between them, not open questions or running tools. The caller's own limit: off by default and
   * never retried.
   */
  readonly run: number;
}

/** What a caller may set; `false` switches a clock off. */
export type ClockOptions = { readonly [K in keyof Clocks]?: number | false };

/** `first_progress` of a model that does not reason: it waits only for its queue and for the prompt to be read. */
export const firstProgressMs = 180_000;

/** Models that reason, or may: a guard of 60 s killed healthy slow models (coder #26010). */
export const firstProgressReasoningMs = 600_000;

/** Between two signs of progress: longer than any thought that was measured, shorter than a lost evening. */
export const idleMs = 300_000;

/** Without a byte from a provider that sends keep-alives. */
export const silenceMs = 90_000;

/** Keep-alives that prove that a provider sends them; only then does silence mean something. */
export const keepAlivesToArm = 2;

/** Idle limit once the terminal marker was seen: usage may follow it, but a socket that is left open must not hold the end. */
export const lingerMs = 10_000;

/**
 * Longest sleep of the watchdog while anything is watched, in milliseconds. A gap in our own time hides behind what is left
 * of a sleep, so that one of `sweepMs` more than `suspendLateMs` is always found.
 */
export const sweepMs = 1_000;

/** How late the watchdog must wake, by either clock, for a gap in which this process did not run (a suspension). */
export const suspendLateMs = 2_000;

/** No clock cuts for so long after a suspension: sockets and providers need a moment to notice it. */
export const suspendGraceMs = 20_000;

/** How long nothing comes before a path is asked whether it is lost, in milliseconds. */
export const askAfterMs = 10_000;

/** How much more silence it takes each time before it is asked again, in milliseconds; the last one repeats. */
export const askAgainMs: ReadonlyArray<number> = [10_000, 20_000, 40_000, 60_000];

/** A look reads the deadlines of so much later too, in milliseconds: those that have moved away need no look of their own. */
export const foresightMs = 500;

/** Paths are asked in multiples of this, in milliseconds: at most so much late, and the silence of many costs few looks. */
export const askGridMs = 500;

/** Suspensions of one attempt that are granted a grace; the gaps of all of them are held time. */
export const suspendGracesMax = 32;

/** A wake that is later than this finds what has come meanwhile still unread; clocks are looked at again before they cut. */
export const lateMs = 50;

/** How long what has come meanwhile is given to be read, after a late wake. */
export const catchUpMs = 100;

/** How long a superseded attempt may take to close before it is abandoned (L6). */
export const closeGraceMs = 1_000;

/**
 * Gives the clocks of a run.
 *
 * @param provider its `reasoning` flag chooses the first_progress default
 * @param streaming false for a response that comes whole: it has no first progress to wait for
 * @param options the caller's own limits, in milliseconds
 */
export const make = (provider: Provider, streaming: boolean, options?: ClockOptions): Clocks => {
  if (options !== undefined) return made(provider, streaming, options);
  return !streaming ? whole : provider.reasoning === false ? plain : reasoning;
};

const made = (provider: Pick<Provider, "reasoning">, streaming: boolean, options: ClockOptions): Clocks => ({
  first_progress: limit(
    options.first_progress,
    streaming ? (provider.reasoning === false ? firstProgressMs : firstProgressReasoningMs) : Number.POSITIVE_INFINITY,
  ),
  idle: limit(options.idle, idleMs),
  silence: limit(options.silence, silenceMs),
  attempt: limit(options.attempt, Number.POSITIVE_INFINITY),
  run: limit(options.run, Number.POSITIVE_INFINITY),
});

/** Doubles one clock: after a stall the same prefill is never cut at the same deadline twice. */
export const doubled = (clocks: Clocks, clock: ClockName): Clocks =>
  clock === "connect" ? clocks : { ...clocks, [clock]: clocks[clock] * 2 };

const limit = (option: number | false | undefined, byDefault: number): number =>
  option === false ? Number.POSITIVE_INFINITY : (option ?? byDefault);

// Runs that set no clock of their own share these.
const whole = made({}, false, {});
const plain = made({ reasoning: false }, true, {});
const reasoning = made({}, true, {});
