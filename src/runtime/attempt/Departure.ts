/**
 * Lets the requests of one run go: at once where its path is open, else when the processor's `Paths` say so.
 *
 * D1 A request that waits was not sent, and no clock of its attempt runs.
 * D2 A wait is told, counted and put on record when it begins and when it is over, however it ends.
 * D3 A place among the requests that were let go together is given back once: with the response, or when there will be none.
 * D4 What may be waited is never more than the budget says, all waits together, until a person lets the run go on.
 */
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type { AttemptFacts, Delivery } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { Budget, Provider, RunFacts } from "../../domain/RunFacts.ts";
import type { Evidence } from "../../domain/RunIncident.ts";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import type { Path } from "../../paths/Path.ts";
import type { Admitted, PathsService, Refusal, Scope, Wait } from "../../paths/Paths.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Waiting } from "../contract/RunEvent.ts";
import { type AttemptEnd, failed, pathLost } from "./AttemptEnd.ts";
import type { Watchdog } from "./Watchdog.ts";

/** The run whose requests go. */
interface Owner {
  /** Whose requests share a wait with the one that goes next. */
  readonly scope: Scope;
  readonly budget: Budget;
  readonly attempts: number;
  readonly shared: { readonly paths: PathsService; readonly watchdog: Watchdog };
  readonly spending: {
    readonly facts: () => { readonly waited_ms: number };
    readonly waitedToGo: (ms: number) => void;
  };
  readonly telemetry: {
    readonly waits: (it: Wait["for"]) => void;
    readonly waited: (it: Wait["for"], ms: number) => void;
  };
  /** What the run's own fibers run with. */
  readonly services: Context.Context<never>;
  readonly handoff: { readonly push: (event: Waiting) => void };
  /** The run has ended, and nothing more of it is put on record (L7). */
  readonly ledger: { readonly ended: boolean };
  readonly now: () => number;
  readonly note: (attempt: number, event: Evidence["event"], detail?: string) => void;
  readonly write: (entries: ReadonlyArray<Entry>) => Effect.Effect<boolean>;
}

/** A wait that is open. */
interface OpenWait {
  readonly for: Wait["for"];
  /** Monotonic milliseconds. */
  readonly from: number;
  /** What this process had slept until then, in milliseconds. */
  readonly slept: number;
}

/** `goes`: the request may be sent. Else what it would have to wait for, and how long as far as that is known. */
export type Departed =
  | { readonly _tag: "goes" }
  | { readonly _tag: "stays"; readonly for: Wait["for"]; readonly waitMs: number };

/** How much too early a wait may seem to be over, in milliseconds. */
const earlyMs = 50;

/** The request may be sent. */
export const goes: Departed = { _tag: "goes" };

/** Gives back no place. */
const nothingHeld = (): void => undefined;

/** The scope of a run's requests. */
export const scopeOf = ({ id, model }: Provider, path: string | Path | undefined): Scope =>
  typeof path === "object"
    ? { path: path.id, credential: path.credential ?? "", model }
    : { path: path ?? id, credential: "", model };

/** A path that says itself how it can be asked is asked that way from now on. */
export const attach = (
  { paths }: { readonly paths: Pick<PathsService, "attach"> },
  path: string | Path | undefined,
): void => {
  if (typeof path === "object" && path.way !== undefined) paths.attach(path.id, path.way);
};

/** The requests of one run on their way out. Made for the first one that cannot go at once. */
export class Departure {
  readonly #run: Owner;
  /** Gives back the place of a request that was let go (D3). */
  #leave: (() => void) | undefined;
  #open: OpenWait | undefined;
  #mayNotWait = false;
  #failedThough = false;
  #waitedForPath = false;

  constructor(run: Owner) {
    this.#run = run;
  }

  /** Whether the next request was let go. Then its path is up for it and nothing cools, whatever holds others. */
  get isLetGo(): boolean {
    return this.#leave !== undefined;
  }

  /** Whether the next request waited for its path and was let go: it may go once, whatever is spent of the budget. */
  get waitedForPath(): boolean {
    return this.#waitedForPath;
  }

  /** The next request has waited for its path and was let go. Holds until an attempt of the run breaks again. */
  hasWaitedForPath(has: boolean): void {
    this.#waitedForPath = has;
  }

  /** Whether the request may be sent in this step. One that was let go stays where a refusal was heard meanwhile. */
  get mayGo(): boolean {
    const { budget, scope, shared } = this.#run;
    if (this.#leave === undefined) return shared.paths.isOpen(scope);
    return shared.paths.standing(scope, budget.max_retry_after_ms).cooldownMs <= 0;
  }

  /** What the run may spend, as a decision takes it: a run that found no place to wait may wait no more (D4). */
  get budget(): Budget {
    const { budget, spending } = this.#run;
    return this.#mayNotWait ? { ...budget, max_outage_ms: spending.facts().waited_ms } : budget;
  }

  /** Waits until the request may go, at most as long as the budget allows (D1). An interruption ends the wait at once. */
  get admitted(): Effect.Effect<Departed> {
    return Effect.suspend(() => {
      this.leave();
      if (this.#mayNotWait) return Effect.succeed(this.#stays(undefined));
      const { budget, scope, shared } = this.#run;
      const admit = shared.paths.admit({
        scope,
        maxRetryAfterMs: budget.max_retry_after_ms,
        withinMs: this.#leftMs,
        told: (wait) => this.#told(wait),
        hold: (leave) => {
          this.#leave = leave;
        },
      });
      return admit.pipe(
        Effect.onExit((exit) => Effect.sync(() => this.#over(Exit.isSuccess(exit) ? exit.value : undefined))),
        Effect.flatMap((admitted) => {
          if (admitted._tag === "admitted") return Effect.succeed(goes);
          // This process has slept meanwhile: that was no time in which the path could have come back.
          const isLate = admitted._tag === "too_long" && admitted.for === "path" && this.#leftMs > 0;
          return isLate ? this.admitted : Effect.succeed(this.#stays(admitted));
        }),
      );
    });
  }

  /**
   * Waits for the turn of an attempt that has begun already: a first one, or one whose turn was taken back meanwhile.
   *
   * @param go sends its request
   * @param elsewhere done once another route would take it: then it waits no longer, and its decision moves it
   */
  inTurn(
    attempt: { readonly decide: (end: AttemptEnd) => unknown },
    go: () => void,
    elsewhere: Effect.Effect<void> | undefined,
  ): Effect.Effect<void> {
    const turn = elsewhere === undefined ? this.admitted : Effect.raceFirst(this.admitted, this.#until(elsewhere));
    return Effect.flatMap(turn, (departed): Effect.Effect<void> => {
      if (departed._tag === "stays") return Effect.sync(() => void attempt.decide(failed(stayed(departed), undefined)));
      return this.mayGo ? Effect.sync(go) : this.inTurn(attempt, go, elsewhere);
    });
  }

  /** Stays as soon as that is done. */
  #until(elsewhere: Effect.Effect<void>): Effect.Effect<Departed> {
    return Effect.map(elsewhere, () => this.#asItStands);
  }

  /** The request has a response, or there will be none (D3). */
  leave(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  /** The run goes although it may wait no longer: its policy says so, and the attempt counts as any other. */
  goesAnyway(): void {
    this.#leave ??= nothingHeld;
  }

  /** Whether the last connect failed although its path works: that is no outage, and counts as ever. */
  get failedThough(): boolean {
    return this.#failedThough;
  }

  failsThough(is: boolean): void {
    this.#failedThough = is;
  }

  /** The run may wait no more. Returns whether that is new. */
  givesUp(): boolean {
    const isNew = !this.#mayNotWait;
    this.#mayNotWait = true;
    return isNew;
  }

  /** A person lets the run go on: it may wait anew (D4). */
  mayWaitAnew(): void {
    this.#mayNotWait = false;
  }

  /** What may still be waited, in milliseconds. */
  get #leftMs(): number {
    const { budget, spending } = this.#run;
    const { max_outage_ms } = budget;
    if (max_outage_ms === "forever") return Number.POSITIVE_INFINITY;
    return Math.max(0, max_outage_ms - spending.facts().waited_ms);
  }

  #told(wait: Wait): void {
    const run = this.#run;
    if (this.#open?.for !== wait.for) {
      this.#closed();
      run.shared.watchdog.keepAwake();
      this.#open = { for: wait.for, from: run.now(), slept: run.shared.watchdog.sleptMs };
      run.note(run.attempts, "waiting", wait.for);
      run.telemetry.waits(wait.for);
    }
    const { since, until } = wait;
    const told = {
      for: wait.for,
      since: Math.round(since),
      ...(until === undefined ? {} : { until: Math.round(until) }),
    };
    run.handoff.push({ _tag: "Waiting", ...told });
    this.#record({ _tag: "RunWaited", waited_ms: run.spending.facts().waited_ms, wait: told });
  }

  /** The wait is over (D2). */
  #over(admitted: Admitted | undefined): void {
    if (!this.#closed()) return;
    // A timer may ring a moment early: what was to be waited counts as waited.
    if (admitted?._tag === "too_long" && this.#leftMs < earlyMs) this.#run.spending.waitedToGo(this.#leftMs);
    this.#run.note(this.#run.attempts, "waiting", "over");
    this.#record({ _tag: "RunWaited", waited_ms: this.#run.spending.facts().waited_ms });
  }

  /** Counts a wait that was open. Returns whether one was. */
  #closed(): boolean {
    const open = this.#open;
    if (open === undefined) return false;
    this.#open = undefined;
    const run = this.#run;
    const { watchdog } = run.shared;
    watchdog.catchUp();
    const ms = Math.max(0, run.now() - open.from - (watchdog.sleptMs - open.slept));
    watchdog.maySleep();
    run.spending.waitedToGo(ms);
    run.telemetry.waited(open.for, ms);
    return true;
  }

  #stays(admitted: Exclude<Admitted, { readonly _tag: "admitted" }> | undefined): Departed {
    if (admitted?._tag === "too_long") return { _tag: "stays", for: admitted.for, waitMs: admitted.waitMs };
    this.#mayNotWait = true;
    return this.#asItStands;
  }

  get #asItStands(): Departed {
    const { budget, scope, shared } = this.#run;
    const { cooldownMs, path } = shared.paths.standing(scope, budget.max_retry_after_ms);
    return { _tag: "stays", for: path === "down" ? "path" : "cooldown", waitMs: cooldownMs };
  }

  /** Nothing waits for the store here: a record that lacks a wait lets the run wait longer after a crash, and no more. */
  #record(entry: Entry): void {
    const run = this.#run;
    if (!run.ledger.ended) Effect.runForkWith(run.services)(run.write([entry]));
  }
}

/** How an attempt ends that could not go: its request was not sent. */
const stayed = (departed: Extract<Departed, { readonly _tag: "stays" }>): Failure =>
  departed.for === "path"
    ? { kind: "transport", operation: "connect", code: pathDown }
    : { kind: "rate_limited", code: announcedCooldown, retry_after_ms: Math.ceil(departed.waitMs) };

/** The code of a request that was not sent because its path was down for longer than it may wait. */
const pathDown = "path_down";

/** The code of a request that was not sent because its provider takes no more for longer than it may wait. */
const announcedCooldown = "announced_cooldown";

/** A run, as far as its path is asked or told of. */
interface Traveller {
  readonly scope: Scope;
  readonly budget: Budget;
  readonly shared: { readonly paths: PathsService };
  readonly going: Departure | undefined;
}

/** How things stand for a run's next request, as a decision takes it. One that was let go waits for nothing any more. */
export const standingOf = (run: Traveller): Pick<RunFacts, "path" | "waited_for_path" | "cooldown_ms"> => {
  const { going } = run;
  if (going?.isLetGo === true) return { path: "up", waited_for_path: going.waitedForPath, cooldown_ms: 0 };
  const { cooldownMs, path } = run.shared.paths.standing(run.scope, run.budget.max_retry_after_ms);
  return {
    path: going?.failedThough === true ? "up" : path,
    waited_for_path: going?.waitedForPath === true,
    cooldown_ms: Math.ceil(cooldownMs),
  };
};

/** Whether the path of a run is up, or at least was when its request was let go. */
export const isUp = (run: Traveller): boolean => standingOf(run).path === "up";

/** An attempt, as far as it has met a path. */
interface Travelled {
  readonly facts: { readonly snapshot: () => AttemptFacts };
  readonly isAnswered: boolean;
  readonly path: string;
}

/** Tells the paths what an attempt has met. A connect that failed is told apart, because its path has to be asked. */
export const tell = (run: Traveller, { facts, isAnswered, path }: Travelled, failure: Failure | undefined): void => {
  const { shared } = run;
  const scope = { ...run.scope, path };
  const { delivery } = facts.snapshot();
  if (!isAnswered && (delivery === "accepted" || failure?.status !== undefined)) shared.paths.answered(scope);
  if (failure === undefined) return;
  const refusal = refusalOf(failure);
  if (refusal !== undefined) shared.paths.refused(scope, refusal);
  if (failure.kind === "transport" && failure.code !== pathLost && !isUnconnected(failure, delivery)) {
    // A connection that breaks was made: the address is right, whether a head has ever come over it or not.
    shared.paths.wasReached(scope.path);
    shared.paths.broke(scope);
  }
};

/** A refusal with a wait, as the provider has announced it. */
const refusalOf = (failure: Failure): Refusal | undefined => {
  const { kind, only_this = false, retry_after_ms: waitMs } = failure;
  if (waitMs === undefined || failure.code === announcedCooldown) return undefined;
  if (kind === "rate_limited" || kind === "overloaded") return { kind, waitMs, onlyThis: only_this };
  const isBusy = kind === "server_error" && failure.status === 503 && failure.not_processed === true;
  return isBusy ? { kind: "overloaded", waitMs, onlyThis: only_this } : undefined;
};

/**
 * Whether no connection could be made: the request was not sent, or the failure is one that only a connect meets. A certificate
 * counts too, since somebody else than the origin may have answered.
 */
export const isUnconnected = (failure: Failure, delivery: Delivery): boolean => {
  if (failure.code === pathDown || failure.code === pathLost) return false;
  if (failure.kind === "stalled") return failure.clock === "connect";
  if (failure.kind !== "transport") return false;
  const known = failure.code === undefined ? undefined : TransportCodes.lookup(failure.code);
  if (known?.meaning === "never") return known.operation === "connect";
  return delivery === "not_sent" || failure.operation === "connect" || known?.operation === "connect";
};
