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
import * as Json from "../../domain/Json.ts";
import { labelCharactersMax } from "../../domain/Limits.ts";
import { fresh } from "../../domain/RunFacts.ts";
import { isOwnFault, patienceMs } from "../../policy/Moves.ts";
import type { AttemptRecord, RunRecord } from "../../recorder/RunRecord.ts";
import { scopeOf } from "../../runtime/attempt/Departure.ts";
import { type RunOptions, type RunRoute, type RunRoutes, releaseStreams } from "../../runtime/contract/RunOptions.ts";
import type {
  FirstFailure,
  KeptFailure,
  Requested,
  RouteFacts,
  RouteFailure,
  RouteGate,
  RouteHost,
} from "../../runtime/contract/Stages.ts";
import { describe, problemOfPath, problemOfProvider, trimProvider } from "../../runtime/Entrance.ts";
import type { BreakerStanding } from "./Breaker.ts";
import { Breakers } from "./Breakers.ts";

/** Maximum number of routes of a run, including the first. */
export const routesMax = 16;

/**
 * Returns the option that gives a run fallback routes.
 *
 * @param further the routes after the first, in the order of failover; at most 15
 * @param options `own` is true if the statuses 400, 401 and 404 of the first route are the route's fault, `credential` if only 401 is.
 *   Default false: all three are the caller's fault
 */
export const of = <P, E, R>(
  further: ReadonlyArray<RunRoute<P, E, R>>,
  { own = false }: { readonly own?: boolean | "credential" } = {},
): RunRoutes<P, E, R> => ({ further, own, admit, begin });

const admit: RunRoutes<never, never, never>["admit"] = (routes) =>
  problemOf(routes.further) ??
  (typeof routes.own === "boolean" || routes.own === "credential"
    ? { ...routes, further: routes.further.map((it) => ({ ...it, provider: trimProvider(it.provider) })) }
    : `routes.own: expected a boolean or credential, got ${describe(routes.own)}`);

const begin: RunRoutes<never, never, never>["begin"] = (routes, options, host) =>
  routes.further.length === 0 ? undefined : new Routes(routes, options, host);

const problemOf = (routes: unknown): string | undefined => {
  if (!Array.isArray(routes)) return `routes: expected a list, got ${describe(routes)}`;
  if (routes.length >= routesMax) return `routes: expected at most ${routesMax - 1}, got ${routes.length}`;
  const ids = new Set<unknown>();
  for (const [at, route] of routes.entries()) {
    const name = `routes[${at}]`;
    const it = Json.record(route);
    if (it === undefined) return `${name}: expected an object, got ${describe(route)}`;
    const { attempt, canContinue, id, observe, own, path, provider } = it;
    if (typeof id !== "string" || id === "" || id.length > labelCharactersMax)
      return `${name}.id: expected a name of 1 to ${labelCharactersMax} characters, got ${describe(id)}`;
    if (ids.has(id)) return `${name}.id: expected a unique name, got "${id}", which another route has`;
    ids.add(id);
    const problem = problemOfProvider(`${name}.provider`, provider) ?? problemOfPath(`${name}.path`, path);
    if (problem !== undefined) return problem;
    if (typeof attempt !== "function") return `${name}.attempt: expected a function, got ${describe(attempt)}`;
    if (canContinue !== undefined && typeof canContinue !== "function")
      return `${name}.canContinue: expected a function, got ${describe(canContinue)}`;
    if (typeof observe !== "function") return `${name}.observe: expected a function, got ${describe(observe)}`;
    if (own !== undefined && typeof own !== "boolean") return `${name}.own: expected a boolean, got ${describe(own)}`;
  }
  return undefined;
};

/** Interval at which a waiting run checks whether another route is up, in milliseconds. */
const lookMs = 1_000;

/** Facts of a request that was not sent yet. */
const unsent: AttemptFacts = { ...freshFacts, delivery: "not_sent" };

/** The breakers of each processor, by the state that its runs share. Only runs with routes need them. */
const allBreakers = new WeakMap<RouteHost["shared"], Breakers>();

const breakersOf = (shared: RouteHost["shared"]): Breakers => {
  const made = allBreakers.get(shared) ?? new Breakers();
  allBreakers.set(shared, made);
  return made;
};

/** The routes of a run that has several. */
class Routes<P, E, R> implements RouteGate<RunOptions<P, E, R>> {
  readonly #host: RouteHost;
  readonly #breakers: Breakers;
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

  /** @param options the run's own options, which are those of its first route */
  constructor({ further, own }: RunRoutes<P, E, R>, options: RunOptions<P, E, R>, host: RouteHost) {
    this.#host = host;
    this.#breakers = breakersOf(host.shared);
    this.#first = new Route(undefined, own, options);
    this.#current = this.#first;
    this.#all = [this.#first, ...further.map((it) => new Route(it.id, it.own ?? true, optionsOn(it, options)))];
  }

  get id(): string | undefined {
    return this.#current.id;
  }

  get own(): RunOptions<P, E, R> {
    return this.#first.options;
  }

  get failures(): number {
    return this.#failures;
  }

  has(id: string): boolean {
    return this.#all.some((route) => route.id === id);
  }

  facts(attempt: Requested): RouteFacts {
    return {
      // A continuation and a cursor are valid at one provider only, so they never change route.
      next_route: attempt.request === "first" && this.#next() !== undefined ? "up" : "none",
      route_failures: Math.max(0, this.#failures - 1),
      own_route: this.#current.isAtFaultFor(this.#broken),
      moves: this.#moves,
    };
  }

  /** Begins on the first route that accepts a request now. Beginning on another route than the first is a move. */
  chooseStart(maxMoves: number): RunOptions<P, E, R> {
    const elsewhere = maxMoves === 0 || this.#isUp(this.#first) ? undefined : this.#next();
    return elsewhere === undefined ? this.#enter(this.#first) : this.#moveTo(elsewhere);
  }

  moveToNext(): RunOptions<P, E, R> {
    const next = this.#next();
    return next === undefined ? this.#current.options : this.#moveTo(next);
  }

  elsewhere(attempt: Requested): Effect.Effect<void> | undefined {
    if (attempt.request !== "first" || !this.#shouldMoveAway) return undefined;
    return this.lookUntil(Effect.sync(() => this.#next() !== undefined));
  }

  lookUntil(isUp: Effect.Effect<boolean>): Effect.Effect<void> {
    return Effect.asVoid(Effect.repeat(Effect.delay(isUp, lookMs), { until: (is) => is }));
  }

  /** True if the policy would change route for a request that waits for its path. */
  get #shouldMoveAway(): boolean {
    const { budget, policy } = this.#host;
    const failure = { kind: "transport", operation: "connect" } as const;
    const run = { ...fresh, path: "down", next_route: "up", moves: this.#moves } as const;
    return policy.decide({ facts: unsent, failure, run, budget, jitter: 0 }).route === "next";
  }

  recordFailure(failure: Failure, facts: AttemptFacts, mayMend: boolean): void {
    this.#failures += 1;
    this.#broken = failure;
    const { breaker } = this.#current;
    if (isOwnFault({ failure, run: { own_route: this.#current.isAtFaultFor(failure) } })) {
      if (!mayMend) this.#breakers.trip(breaker, this.#now);
    } else if (isRouteFault(failure, facts)) {
      this.#breakers.recordFailure(breaker, this.#host.runId, this.#now);
    }
  }

  /** Keeps the failure if it is of the route that was tried first (O3). */
  keepFailure({ cause, facts, failure }: KeptFailure): void {
    this.#keepFirstFailure(this.#current, { failure, facts: facts(), cause });
  }

  get firstFailure(): FirstFailure | undefined {
    return this.#failedFirst?.on === this.#current ? undefined : this.#failedFirst;
  }

  resetFailures(): void {
    this.#failures = 0;
  }

  recordResponse(): void {
    this.#breakers.recordResponse(this.#current.breaker, this.#host.runId);
  }

  onRunEnd(): void {
    this.#leaveCurrent();
    for (const route of this.#all) route.letGo();
  }

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
    this.#current = route;
    this.#tried.add(route);
    this.#failures = 0;
    this.#breakers.enter(route.breaker, this.#host.runId, this.#now);
    return route.options;
  }

  #leaveCurrent(): void {
    this.#breakers.abandonTrial(this.#current.breaker, this.#host.runId, this.#now);
  }

  /** Returns the first route that this run has not tried and that accepts a request now (O1). */
  #next(): Route<P, E, R> | undefined {
    return this.#all.find((route) => !this.#tried.has(route) && this.#isUp(route));
  }

  /** Returns true if a route accepts a request of this run now. */
  #isUp(route: Route<P, E, R>): boolean {
    if (!this.#isReachable(route)) return false;
    const standing = this.#standingOf(route);
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
    return this.#isReachable(route) && this.#standingOf(route) === "closed";
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

  #standingOf({ breaker }: Route<P, E, R>): BreakerStanding {
    return this.#breakers.standingOf(breaker, this.#now);
  }
}

/** One route of a run. */
class Route<P, E, R> {
  /** Undefined for the run's own first route. */
  readonly id: string | undefined;
  readonly #own: RunRoutes<P, E, R>["own"];
  /** Key of the circuit breaker that all runs on this route share. */
  readonly breaker: string;
  #options: RunOptions<P, E, R>;

  constructor(id: string | undefined, own: RunRoutes<P, E, R>["own"], options: RunOptions<P, E, R>) {
    this.id = id;
    this.#options = options;
    this.#own = own;
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

/** Returns the run's options on a fallback route (O2). */
const optionsOn = <P, E, R>(
  { attempt, canContinue, observe, path, provider }: RunRoute<P, E, R>,
  { canContinue: _continue, path: _path, refreshCredentials: _refresh, ...options }: RunOptions<P, E, R>,
): RunOptions<P, E, R> => ({
  ...options,
  attempt,
  observe,
  provider,
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
