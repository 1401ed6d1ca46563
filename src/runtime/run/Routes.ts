/**
 * Tracks the routes that a run has used, and chooses the one to which it may move.
 *
 * O1 A run uses one route at a time, and never returns to a route that it has left.
 * O2 A route has its own provider, attempts and observer. Credentials that a caller renews are those of the first route.
 * O3 At the end the caller gets the last failure of the first route (L12).
 */
import * as Effect from "effect/Effect";
import { type AttemptFacts, fresh as freshFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { type Budget, fresh, type RunFacts } from "../../domain/RunFacts.ts";
import type { BreakerStanding } from "../../paths/Breaker.ts";
import { isOwnFault, patienceMs } from "../../policy/Moves.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { AttemptRecord, RunRecord } from "../../recorder/RunRecord.ts";
import type { AttemptSetup } from "../attempt/AttemptHost.ts";
import { scopeOf } from "../attempt/Departure.ts";
import { type RunOptions, type RunRoute, releaseStreams } from "../contract/RunOptions.ts";
import type { BrokenAttempt } from "./Chain.ts";
import type { Shared } from "./Shared.ts";

/** The parts of a run that its routes use. */
interface RoutesHost {
  readonly runId: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly budget: Budget;
  readonly policy: Pick<RecoveryPolicy, "decide">;
  readonly shared: Pick<Shared, "breakers" | "origins" | "paths">;
}

/** Interval at which a waiting run checks whether another route is up, in milliseconds. */
export const lookMs = 1_000;

/** Facts of a request that was not sent yet. */
const unsent: AttemptFacts = { ...freshFacts, delivery: "not_sent" };

/** A failure on a route. */
interface RouteFailure {
  readonly failure: Failure;
  readonly facts: AttemptFacts;
  /** The original error, unchanged (L12). */
  readonly cause: unknown;
}

/** The facts that routes contribute to a decision. */
export type RouteFacts = Pick<RunFacts, "next_route" | "route_failures" | "own_route" | "moves">;

/** Returns the route facts of a run with a single route. */
export const oneRoute = (options: Pick<RunOptions<never, never, never>, "ownRoute">): RouteFacts => ({
  next_route: "none",
  route_failures: 0,
  own_route: (options.ownRoute ?? false) !== false,
  moves: 0,
});

/** The routes of a run that has several. */
export class Routes<P, E, R> {
  readonly #host: RoutesHost;
  readonly #first: Route<P, E, R>;
  /** All routes, in the order in which a run moves to them. */
  readonly #all: ReadonlyArray<Route<P, E, R>>;
  /** Routes that were tried, at most all of `#all`. */
  readonly #tried = new Set<Route<P, E, R>>();
  #current: Route<P, E, R>;
  #moves = 0;
  /** Consecutive failures on the current route, including the newest. */
  #failures = 0;
  /** The newest failure. */
  #broken: Failure | undefined;
  #failedFirst: (RouteFailure & { readonly on: Route<P, E, R> }) | undefined;

  private constructor(options: RunOptions<P, E, R>, host: RoutesHost) {
    this.#host = host;
    this.#first = new Route(undefined, options);
    this.#current = this.#first;
    this.#all = [this.#first, ...(options.routes ?? []).map((it) => new Route(it.id, optionsOn(it, options)))];
  }

  /**
   * Returns the routes of a run; undefined if it has only one, which costs nothing.
   *
   * @param options the run's own options, which are those of its first route
   */
  static of<P, E, R>(options: RunOptions<P, E, R>, host: RoutesHost): Routes<P, E, R> | undefined {
    return options.routes === undefined || options.routes.length === 0 ? undefined : new Routes(options, host);
  }

  /** Returns a sentence with the reason if a run cannot continue from its record with these routes; undefined if it can. */
  static problem(routes: ReadonlyArray<{ readonly id: string }> = [], record: RunRecord): string | undefined {
    const id = record.attempts.at(-1)?.route;
    return id === undefined || routes.some((route) => route.id === id)
      ? undefined
      : `routes: expected one with the id "${id}", which the run uses`;
  }

  /** The id of the current route; undefined for the first route. */
  get id(): string | undefined {
    return this.#current.id;
  }

  /** The run's own options, which are those of its first route. */
  get own(): RunOptions<P, E, R> {
    return this.#first.options;
  }

  /** Consecutive failures on the current route so far. */
  get failures(): number {
    return this.#failures;
  }

  /** Returns the routes' facts for a decision about a failed attempt. */
  facts(attempt: Pick<AttemptSetup<P>, "request">): RouteFacts {
    return {
      // A continuation and a cursor are valid at one provider only, so they never change route.
      next_route: attempt.request === "first" && this.#next() !== undefined ? "up" : "none",
      route_failures: Math.max(0, this.#failures - 1),
      own_route: this.#current.isAtFaultFor(this.#broken),
      moves: this.#moves,
    };
  }

  /**
   * Chooses the route on which the run begins: the first route that accepts a request now.
   *
   * @param maxMoves maximum moves of the run. Beginning on another route than the first is a move
   * @returns the options of the chosen route
   */
  chooseStart(maxMoves: number): RunOptions<P, E, R> {
    const elsewhere = maxMoves === 0 || this.#isUp(this.#first) ? undefined : this.#next();
    return elsewhere === undefined ? this.#enter(this.#first) : this.#moveTo(elsewhere);
  }

  /** Moves to the next route that accepts a request now. If there is none, stays on the current route. Returns the route's options. */
  moveToNext(): RunOptions<P, E, R> {
    const next = this.#next();
    return next === undefined ? this.#current.options : this.#moveTo(next);
  }

  /**
   * Waits until another route would take the request of an attempt that waits for its turn.
   *
   * @returns undefined if the run would not change route for that request
   */
  elsewhere(attempt: Pick<AttemptSetup<P>, "request">): Effect.Effect<void> | undefined {
    if (attempt.request !== "first" || !this.#shouldMoveAway) return undefined;
    const look = Effect.sync(() => this.#next() !== undefined);
    return Effect.asVoid(Effect.repeat(Effect.delay(look, lookMs), { until: (isUp) => isUp }));
  }

  /** True if the policy would change route for a request that waits for its path. */
  get #shouldMoveAway(): boolean {
    const { budget, policy } = this.#host;
    const failure = { kind: "transport", operation: "connect" } as const;
    const run = { ...fresh, path: "down", next_route: "up", moves: this.#moves } as const;
    return policy.decide({ facts: unsent, failure, run, budget, jitter: 0 }).route === "next";
  }

  /**
   * Reports a failed attempt on the current route.
   *
   * @param mayMend true if the credentials of the route can still be renewed
   */
  recordFailure(failure: Failure, facts: AttemptFacts, mayMend: boolean): void {
    this.#failures += 1;
    this.#broken = failure;
    const { breaker } = this.#current;
    const { runId, shared } = this.#host;
    if (isOwnFault({ failure, run: { own_route: this.#current.isAtFaultFor(failure) } })) {
      if (!mayMend) shared.breakers.trip(breaker, this.#now);
    } else if (isRouteFault(failure, facts)) {
      shared.breakers.recordFailure(breaker, runId, this.#now);
    }
  }

  /** Keeps the last failure of the route that was tried first, because the caller may get it when the run ends (O3). */
  keepFailure({ cause, facts, failure }: BrokenAttempt<P>): void {
    this.#keepFirstFailure(this.#current, { failure, facts: facts(), cause });
  }

  /** The last failure of the first route that was tried, if the run ends on another one (O3). */
  get firstFailure(): (RouteFailure & { readonly on: { readonly id: string | undefined } }) | undefined {
    return this.#failedFirst?.on === this.#current ? undefined : this.#failedFirst;
  }

  /** Called when a person asks for a retry. Earlier failures no longer count. */
  resetFailures(): void {
    this.#failures = 0;
  }

  /** Called when the response is complete. */
  recordResponse(): void {
    this.#host.shared.breakers.recordResponse(this.#current.breaker, this.#host.runId);
  }

  /** Called when the run has ended. Releases the memory that the requests of all routes hold (L11). */
  onRunEnd(): void {
    this.#leaveCurrent();
    for (const route of this.#all) route.letGo();
  }

  /**
   * Restores the route of the last recorded attempt, which has failed.
   *
   * @returns the options of that route
   */
  restore({ attempts, attempts_omitted, incidents }: RunRecord): RunOptions<P, E, R> {
    const last = attempts.at(-1);
    const routeOf = (it: AttemptRecord | undefined) => this.#all.find(({ id }) => id === it?.route) ?? this.#first;
    if (attempts_omitted > 0) this.#tried.add(this.#first);
    for (const attempt of attempts) this.#tried.add(routeOf(attempt));
    for (const { attempt, facts, failure, status } of incidents) {
      const on = attempts.find((it) => it.attempt === attempt);
      if (on !== undefined && status !== "late")
        this.#keepFirstFailure(routeOf(on), { failure, facts, cause: undefined });
    }
    const options = this.#enter(routeOf(last));
    this.#moves = last?.run?.moves ?? 0;
    this.#failures = (last?.run?.route_failures ?? 0) + 1;
    return options;
  }

  #keepFirstFailure(on: Route<P, E, R>, failed: RouteFailure): void {
    const before = this.#failedFirst?.on;
    if (on === this.#first || before === undefined || before === on) this.#failedFirst = { ...failed, on };
  }

  #moveTo(route: Route<P, E, R>): RunOptions<P, E, R> {
    this.#leaveCurrent();
    this.#moves += 1;
    return this.#enter(route);
  }

  #enter(route: Route<P, E, R>): RunOptions<P, E, R> {
    const { runId, shared } = this.#host;
    this.#current = route;
    this.#tried.add(route);
    this.#failures = 0;
    shared.breakers.enter(route.breaker, runId, this.#now);
    return route.options;
  }

  #leaveCurrent(): void {
    const { runId, shared } = this.#host;
    shared.breakers.abandonTrial(this.#current.breaker, runId, this.#now);
  }

  /** Returns the first route that this run has not tried and that accepts a request now (O1). */
  #next(): Route<P, E, R> | undefined {
    return this.#all.find((route) => !this.#tried.has(route) && this.#isUp(route));
  }

  /** Returns true if a route accepts a request of this run now. */
  #isUp(route: Route<P, E, R>): boolean {
    if (!this.#isReachable(route)) return false;
    const standing = this.#standing(route);
    // A half-open breaker admits only some runs: a run that could still use another route if this one fails, and a run whose current route
    // is down.
    return standing === "half_open" ? this.#hasAnother(route) || this.#isLost(route) : standing === "closed";
  }

  /** Returns true if this run could still use another route that is reachable and has a closed breaker. */
  #hasAnother(route: Route<P, E, R>): boolean {
    return this.#all.some((other) => other !== route && !this.#tried.has(other) && this.#isWell(other));
  }

  /** Returns true if the run is on another route, and that route is unreachable or its breaker is not closed. */
  #isLost(route: Route<P, E, R>): boolean {
    return route !== this.#current && !this.#isWell(this.#current);
  }

  #isWell(route: Route<P, E, R>): boolean {
    return this.#isReachable(route) && this.#standing(route) === "closed";
  }

  #isReachable({ options }: Route<P, E, R>): boolean {
    const { budget, shared } = this.#host;
    const scope = shared.origins.next(options.provider, options.path);
    const { cooldownMs, path } = shared.paths.standing(scope, budget.max_retry_after_ms);
    return path === "up" && cooldownMs <= patienceMs;
  }

  get #now(): number {
    return this.#host.now();
  }

  #standing({ breaker }: Route<P, E, R>): BreakerStanding {
    return this.#host.shared.breakers.standing(breaker, this.#now);
  }
}

/** One route of a run. */
class Route<P, E, R> {
  /** Undefined for the run's own first route. */
  readonly id: string | undefined;
  readonly #own: boolean | "credential";
  /** The key of its breaker. */
  readonly breaker: string;
  #options: RunOptions<P, E, R>;

  constructor(id: string | undefined, options: RunOptions<P, E, R>) {
    this.id = id;
    this.#options = options;
    this.#own = options.ownRoute ?? false;
    const { credential, model, path } = scopeOf(options.provider, options.path);
    // All callers of a route share its breaker. A refusal of a caller's own credential does not count against the route.
    this.breaker = JSON.stringify([
      id ?? "",
      options.provider.id,
      path,
      model ?? "",
      this.#own === false ? "" : credential,
    ]);
  }

  /** Returns true if a refusal of the credential or the model is the route's own fault. */
  isAtFaultFor(failure: Failure | undefined): boolean {
    if (this.#own !== "credential") return this.#own;
    return failure?.kind === "rejected" && failure.reason === "auth";
  }

  /** The run's options on this route (O2). */
  get options(): RunOptions<P, E, R> {
    return this.#options;
  }

  /** Releases everything that requests on this route need, and keeps the route's identity. */
  letGo(): void {
    const kept = releaseStreams(this.#options);
    this.#options = kept;
  }
}

/** Returns the run's options on a further route (O2). */
const optionsOn = <P, E, R>(
  { attempt, canContinue, observe, own, path, provider }: RunRoute<P, E, R>,
  { canContinue: _continue, path: _path, refreshCredentials: _refresh, ...options }: RunOptions<P, E, R>,
): RunOptions<P, E, R> => ({
  ...options,
  attempt,
  observe,
  provider,
  ownRoute: own ?? true,
  ...(canContinue === undefined ? {} : { canContinue }),
  ...(path === undefined ? {} : { path }),
});

/** Returns true if the failure counts against the route and not against the caller or this request. */
const isRouteFault = (failure: Failure, { delivery, progress }: AttemptFacts): boolean => {
  switch (failure.kind) {
    case "server_error":
      return true;
    case "stalled":
      // The `attempt` and `run` clocks are the caller's own limits.
      return failure.clock !== "attempt" && failure.clock !== "run";
    case "transport":
    case "truncated":
      return delivery === "not_sent" || progress !== "output";
    default:
      return false;
  }
};
