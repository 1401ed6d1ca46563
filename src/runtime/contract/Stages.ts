/**
 * Contracts between the runtime and a stage, which is a feature that only some runs have. An option of the run carries the stage as a
 * value, so a program that uses none loads none. The stages are in `src/stages`, and the runtime imports none of them.
 */
import type * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type * as Exit from "effect/Exit";
import type * as Stream from "effect/Stream";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { Observation } from "../../domain/Observation.ts";
import type { AttemptMode, Budget, Provider, RunFacts } from "../../domain/RunFacts.ts";
import type { SeamFault, SeamRefusal } from "../../domain/SeamWords.ts";
import type { Path } from "../../paths/Path.ts";
import type { PathsService, Scope } from "../../paths/Paths.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { AttemptRecord, RunRecord } from "../../recorder/RunRecord.ts";
import type { SeamParts, SeamPlan } from "../../seam/TextSeam.ts";
import type { AttachAfter, AttachRefused } from "./AttachRefused.ts";
import type { Stopper } from "./InterruptSignature.ts";
import type { RunEvent, RunInterrupted } from "./RunEvent.ts";
import type { Taps } from "./Taps.ts";

/** The facts that routes contribute to a decision. */
export type RouteFacts = Pick<RunFacts, "next_route" | "route_failures" | "own_route" | "moves">;

/** The part of an attempt's setup that decides whether its route may change. */
export interface Requested {
  readonly request: "first" | "continue" | "resume";
}

/** A failure on a route. */
export interface RouteFailure {
  readonly failure: Failure;
  readonly facts: AttemptFacts;
  /** The original error, unchanged (L12). */
  readonly cause: unknown;
}

/** A decided failure on a route. */
export type KeptFailure = Pick<RouteFailure, "failure" | "cause"> & { readonly facts: () => AttemptFacts };

/** The failure of the route that was tried first. */
export type FirstFailure = RouteFailure & { readonly on: { readonly id: string | undefined } };

/** The parts of a run that its routes use. */
export interface RouteHost {
  readonly runId: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly budget: Budget;
  readonly policy: Pick<RecoveryPolicy, "decide">;
  /** Shared by all runs of a processor. */
  readonly shared: {
    readonly paths: PathsService;
    readonly origins: { readonly next: (provider: Provider, path: string | Path | undefined) => Scope };
  };
}

/**
 * Moves a run between its routes.
 *
 * @typeParam O the options of the run on one route
 */
export interface RouteGate<O> {
  /** The id of the current route; undefined for the first route. */
  readonly id: string | undefined;
  /** The run's own options, which are those of its first route. */
  readonly own: O;
  /** Consecutive failures on the current route so far. */
  readonly failures: number;
  /** The last failure of the first route that was tried, if the run ends on another one. */
  readonly firstFailure: FirstFailure | undefined;
  /** Returns true if a fallback route has this id. */
  has(id: string): boolean;
  /** Returns the routes' facts for a decision about a failed attempt. */
  facts(attempt: Requested): RouteFacts;
  /**
   * Chooses the route on which the run begins.
   *
   * @param maxMoves maximum moves of the run
   * @returns the options of the chosen route
   */
  chooseStart(maxMoves: number): O;
  /** Moves to the next route that accepts a request now, or stays if there is none. Returns the options of the route. */
  moveToNext(): O;
  /**
   * Waits until another route would take the request of an attempt that waits for its turn.
   *
   * @returns undefined if the run would not change route for that request
   */
  elsewhere(attempt: Requested): Effect.Effect<void> | undefined;
  /** Repeats a look at the other routes at intervals, first after one interval, until it returns true. */
  lookUntil(isUp: Effect.Effect<boolean>): Effect.Effect<void>;
  /**
   * Reports a failed attempt on the current route.
   *
   * @param mayMend true if the credentials of the route can still be renewed
   */
  recordFailure(failure: Failure, facts: AttemptFacts, mayMend: boolean): void;
  /** Keeps a decided failure, because the caller may get it when the run ends. */
  keepFailure(broken: KeptFailure): void;
  /** Called when a person asks for a retry. Earlier failures no longer count. */
  resetFailures(): void;
  /** Called when the response is complete. */
  recordResponse(): void;
  /** Called when the run has ended. Releases what its requests hold (L11). */
  onRunEnd(): void;
  /**
   * Restores the route of the last recorded attempt, which has failed.
   *
   * @returns the options of that route
   */
  restore(record: RunRecord): O;
}

/** The parts of an attempt's setup that a seam uses. */
export interface Continued extends Requested {
  readonly mode: AttemptMode;
  /** Plan for the continuation of shown text; undefined if the attempt continues none. */
  readonly seam?: SeamPlan | undefined;
}

/** A broken attempt, as a seam uses it. */
export interface BrokenText {
  readonly attempt: {
    readonly number: number;
    readonly setup: Continued;
    readonly facts: { readonly snapshot: () => AttemptFacts };
  };
  readonly failure: Failure;
  /** The original error, unchanged (L12). */
  readonly cause: unknown;
  /** Returns the current facts for the decision. */
  readonly facts: () => AttemptFacts;
}

/** The parts of a run that its seams use. */
export interface SeamHost {
  readonly discardable: boolean;
  readonly note: (attempt: number, event: "seam", detail: string) => void;
  readonly spending: { readonly uncountRetry: () => void };
  readonly telemetry: { readonly reportSeam: (outcome: "unproven", reason: string) => void };
}

/** Services that an attempt provides to the check of its continuation. */
export interface SeamOwner {
  readonly facts: { readonly decoded: (observation: Observation) => unknown };
  /** Called once, when the seam is proven. */
  readonly onContinued: () => void;
}

/** Checks the parts of one attempt that continues shown text, before they are held or handed over. */
export interface SeamCheck<P> {
  /** Returns the parts that may pass, or the reason why the seam is not proven. */
  take(batch: SeamParts<P>): SeamParts<P> | SeamFault;
  /** Handles a clean end of the source. Returns the parts that were still withheld, or the reason why the seam is not proven. */
  end(): SeamParts<P> | SeamFault;
}

/**
 * Continues the shown text of a run.
 *
 * @typeParam B the broken attempts of the run
 */
export interface SeamSlot<P, B> {
  /** Length of the text of earlier responses that the caller has kept, in UTF-16 code units. */
  readonly before: number;
  /** Called once for each part that was handed over, in order. */
  recordSent(part: P, observation: Observation): void;
  /** Plans the continuation of the shown text, or returns the reason why there is none. */
  plan(): SeamPlan | SeamRefusal;
  /** Starts the check of an attempt that continues shown text. */
  check(plan: SeamPlan, owner: SeamOwner): SeamCheck<P>;
  /** Called when an attempt is launched after another one broke. */
  onLaunch(setup: Continued, broken: B): void;
  /**
   * Called when an attempt breaks.
   *
   * @returns the break to decide, if the attempt continued shown text and broke before its seam; otherwise undefined
   */
  onBreak(broken: B, host: SeamHost): B | undefined;
  /** Restores the requests with a seam that are on record. */
  restore(attempts: ReadonlyArray<Pick<AttemptRecord, "facts" | "seam">>): void;
  /** Called when the run has ended. Releases the shown text (L11). */
  onRunEnd(): void;
}

/** Takes the next events of a reader. */
export type Taken<P> = Effect.Effect<readonly [RunEvent<P>, ...Array<RunEvent<P>>], RunInterrupted | Cause.Done>;

/** The parts of a run that its readers use. */
export interface ReadHost<P> {
  readonly runId: string;
  readonly attempts: number;
  readonly handoff: { readonly take: Taken<P> };
  readonly ledger: { readonly ended: boolean };
  /** The reason why the run stops; undefined while it runs. */
  readonly stopper: Stopper | undefined;
  readonly stop: (by: Stopper) => void;
  /** Services for the run's own fibers. */
  readonly services: Context.Context<never>;
}

/** The readers of one run, which come and go. */
export interface Readers<P> {
  /** Hooks into the run's output that keep its events. */
  readonly taps: Taps<P>;
  /** Called when the run begins. Returns the pull of its first reader. */
  begin(run: ReadHost<P>): Taken<P>;
  /**
   * Called when the first reader leaves.
   *
   * @returns true if the run stops, has ended or never began. The consumer then waits for the end of the run
   */
  leave(exit: Exit.Exit<unknown, unknown>): boolean;
}

/** The runs of one processor that readers can attach to. */
export interface Lingering {
  /** Creates the readers of a run; undefined if the run ends with its consumer. */
  open<P>(
    linger: { readonly ms: number },
    options: { readonly sizeOf?: (part: P, observation: Observation) => number },
  ): Readers<P> | undefined;
  /**
   * Attaches a reader for the lifetime of its stream.
   *
   * @param why returns the reason why no reader can attach to a run that is not listed
   */
  attach<P>(
    runId: string,
    after: AttachAfter | undefined,
    why: () => AttachRefused["reason"],
  ): Stream.Stream<RunEvent<P>, RunInterrupted | AttachRefused>;
  /** Prevents readers from attaching, and discards the kept events of runs without a reader. */
  close(): void;
}
