/**
 * What the runtime asks of a stage: a feature that only some runs have. An option of the run carries the stage as a value, so a program
 * that uses none loads none. The stages are in `src/stages`, and the runtime imports none of them.
 */
import type * as Effect from "effect/Effect";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { Budget, Provider, RunFacts } from "../../domain/RunFacts.ts";
import type { Path } from "../../paths/Path.ts";
import type { PathsService, Scope } from "../../paths/Paths.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";

/** The facts that routes contribute to a decision. */
export type RouteFacts = Pick<RunFacts, "next_route" | "route_failures" | "own_route" | "moves">;

/** The route facts of a run with a single route. */
export const oneRoute: RouteFacts = { next_route: "none", route_failures: 0, own_route: false, moves: 0 };

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
  /** Returns true if a further route has this id. */
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
