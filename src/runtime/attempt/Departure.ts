/**
 * Releases the requests of one run: immediately if the path is open, else when the processor's `Paths` release them.
 *
 * D1 A waiting request was not sent, and no clock of its attempt runs.
 * D2 Each wait is announced, counted and recorded when it begins and when it ends, no matter how it ends.
 * D3 `Paths` releases waiting requests in batches. A released request frees its slot in its batch once: when it has a response, or
 * cannot have one any more.
 * D4 All waits together never exceed the budget, until a person lets the run continue.
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
import { type AttemptEnd, failureEnd, pathLost } from "./AttemptEnd.ts";
import type { Watchdog } from "./Watchdog.ts";

/** The run that sends the requests. */
interface Owner {
  /** Scope of the next request; all requests of a scope wait together. */
  readonly scope: Scope;
  readonly budget: Budget;
  readonly attempts: number;
  readonly shared: { readonly paths: PathsService; readonly watchdog: Watchdog };
  readonly spending: {
    readonly facts: () => { readonly waited_ms: number };
    readonly addDepartureWait: (ms: number) => void;
  };
  readonly telemetry: {
    readonly reportWaitStart: (it: Wait["for"]) => void;
    readonly reportWaitEnd: (it: Wait["for"], ms: number) => void;
  };
  /** Services for the run's own fibers. */
  readonly services: Context.Context<never>;
  readonly handoff: { readonly push: (event: Waiting) => void };
  /** `ended` is true if the run has ended. Nothing more of it is recorded then (L7). */
  readonly ledger: { readonly ended: boolean };
  readonly now: () => number;
  readonly note: (attempt: number, event: Evidence["event"], detail?: string) => void;
  readonly write: (entries: ReadonlyArray<Entry>) => Effect.Effect<boolean>;
}

interface OpenWait {
  readonly for: Wait["for"];
  /** Start of the wait, in monotonic milliseconds. */
  readonly from: number;
  /** Time that this process had slept before the wait, in milliseconds. */
  readonly slept: number;
}

/**
 * `goes`: the request may be sent. `stays`: the request cannot be sent yet. `for` names what it waits for, and `waitMs` is the time if it
 * is known.
 */
export type Departed =
  | { readonly _tag: "goes" }
  | { readonly _tag: "stays"; readonly for: Wait["for"]; readonly waitMs: number };

/** Tolerance for a timer that fires early, in milliseconds. */
const earlyMs = 50;

/** The request may be sent. */
export const goes: Departed = { _tag: "goes" };

/** Frees no slot, because the request was released outside of any batch. */
const nothingHeld = (): void => undefined;

/** Returns the scope of a run's requests. */
export const scopeOf = ({ id, model }: Provider, path: string | Path | undefined): Scope =>
  typeof path === "object"
    ? { path: path.id, credential: path.credential ?? "", model }
    : { path: path ?? id, credential: "", model };

/** Attaches the probe of a path that carries one. */
export const attach = (
  { paths }: { readonly paths: Pick<PathsService, "attach"> },
  path: string | Path | undefined,
): void => {
  if (typeof path === "object" && path.way !== undefined) paths.attach(path.id, path.way);
};

/** Releases the requests of one run. Created for the first request that cannot be sent immediately. */
export class Departure {
  readonly #run: Owner;
  /** Frees the request's slot in its batch (D3); undefined if the next request was not released. */
  #leave: (() => void) | undefined;
  #open: OpenWait | undefined;
  #mayNotWait = false;
  #failedThough = false;
  #waitedForPath = false;

  constructor(run: Owner) {
    this.#run = run;
  }

  /**
   * True if the next request was released. For this request the path counts as up and without a cooldown, even if other requests still
   * wait.
   */
  get isLetGo(): boolean {
    return this.#leave !== undefined;
  }

  /** True if the next request waited for its path and was released. The request may be sent once, even if the budget is exhausted. */
  get hasWaitedForPath(): boolean {
    return this.#waitedForPath;
  }

  /** Sets `hasWaitedForPath`, which stays true until an attempt of the run breaks again. */
  setWaitedForPath(has: boolean): void {
    this.#waitedForPath = has;
  }

  /** True if the request may be sent in this step. A refusal that arrives after the release stops the request again. */
  get mayGo(): boolean {
    const { budget, scope, shared } = this.#run;
    if (this.#leave === undefined) return shared.paths.isOpen(scope);
    return shared.paths.standing(scope, budget.max_retry_after_ms).cooldownMs <= 0;
  }

  /** Budget of the run for a decision. After a wait that did not fit into the budget, no further waiting time is left (D4). */
  get budget(): Budget {
    const { budget, spending } = this.#run;
    return this.#mayNotWait ? { ...budget, max_outage_ms: spending.facts().waited_ms } : budget;
  }

  /** Waits until the request may be sent, within the budget (D1). An interruption ends the wait immediately. */
  get awaitAdmission(): Effect.Effect<Departed> {
    return Effect.suspend(() => {
      this.leave();
      if (this.#mayNotWait) return Effect.succeed(this.#stay(undefined));
      const { budget, scope, shared } = this.#run;
      const admit = shared.paths.admit({
        scope,
        maxRetryAfterMs: budget.max_retry_after_ms,
        withinMs: this.#leftMs,
        onWait: (wait) => this.#announceWait(wait),
        hold: (leave) => {
          this.#leave = leave;
        },
      });
      return admit.pipe(
        Effect.onExit((exit) => Effect.sync(() => this.#recordWaitEnd(Exit.isSuccess(exit) ? exit.value : undefined))),
        Effect.flatMap((admitted) => {
          if (admitted._tag === "admitted") return Effect.succeed(goes);
          // This process was suspended during the wait, and could not notice in that time that the path works again.
          const isLate = admitted._tag === "too_long" && admitted.for === "path" && this.#leftMs > 0;
          return isLate ? this.awaitAdmission : Effect.succeed(this.#stay(admitted));
        }),
      );
    });
  }

  /**
   * Waits for the turn of an attempt that has begun: the run's first attempt, or a later one that lost its turn in the meantime.
   *
   * @param go sends the attempt's request
   * @param elsewhere completes once another route would accept the request. The wait then ends, and the decision may change the route.
   */
  inTurn(
    attempt: { readonly decide: (end: AttemptEnd) => unknown },
    go: () => void,
    elsewhere: Effect.Effect<void> | undefined,
  ): Effect.Effect<void> {
    const turn =
      elsewhere === undefined ? this.awaitAdmission : Effect.raceFirst(this.awaitAdmission, this.#until(elsewhere));
    return Effect.flatMap(turn, (departed): Effect.Effect<void> => {
      if (departed._tag === "stays")
        return Effect.sync(() => void attempt.decide(failureEnd(failureOfStay(departed), undefined)));
      return this.mayGo ? Effect.sync(go) : this.inTurn(attempt, go, elsewhere);
    });
  }

  #until(elsewhere: Effect.Effect<void>): Effect.Effect<Departed> {
    return Effect.map(elsewhere, () => this.#asItStands);
  }

  /** Frees the request's slot in its batch, because the request has a response or cannot have one any more (D3). */
  leave(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  /**
   * Releases the request of a run that must not wait any longer, by its policy or by a person's choice. The attempt counts like any other.
   */
  forceRelease(): void {
    this.#leave ??= nothingHeld;
  }

  /** True if the last connect failed although the path works. That is not an outage, so it counts as a normal failure. */
  get hasFailedOnOpenPath(): boolean {
    return this.#failedThough;
  }

  setFailedOnOpenPath(is: boolean): void {
    this.#failedThough = is;
  }

  /** Forbids further waits. Returns true if they were allowed before. */
  forbidWaits(): boolean {
    const isNew = !this.#mayNotWait;
    this.#mayNotWait = true;
    return isNew;
  }

  /** Allows waits again, because a person lets the run continue (D4). */
  allowWaits(): void {
    this.#mayNotWait = false;
  }

  /** Remaining time to wait, in milliseconds. */
  get #leftMs(): number {
    const { budget, spending } = this.#run;
    const { max_outage_ms } = budget;
    if (max_outage_ms === "forever") return Number.POSITIVE_INFINITY;
    return Math.max(0, max_outage_ms - spending.facts().waited_ms);
  }

  #announceWait(wait: Wait): void {
    const run = this.#run;
    if (this.#open?.for !== wait.for) {
      this.#closeWait();
      run.shared.watchdog.keepAwake();
      this.#open = { for: wait.for, from: run.now(), slept: run.shared.watchdog.sleptMs };
      run.note(run.attempts, "waiting", wait.for);
      run.telemetry.reportWaitStart(wait.for);
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

  /** Records the end of a wait (D2). */
  #recordWaitEnd(admitted: Admitted | undefined): void {
    if (!this.#closeWait()) return;
    // A timer may fire slightly early. The rest of the time then counts as waited.
    if (admitted?._tag === "too_long" && this.#leftMs < earlyMs) this.#run.spending.addDepartureWait(this.#leftMs);
    this.#run.note(this.#run.attempts, "waiting", "over");
    this.#record({ _tag: "RunWaited", waited_ms: this.#run.spending.facts().waited_ms });
  }

  /** Counts the open wait. Returns true if there was one. */
  #closeWait(): boolean {
    const open = this.#open;
    if (open === undefined) return false;
    this.#open = undefined;
    const run = this.#run;
    const { watchdog } = run.shared;
    watchdog.catchUp();
    const ms = Math.max(0, run.now() - open.from - (watchdog.sleptMs - open.slept));
    watchdog.allowSleep();
    run.spending.addDepartureWait(ms);
    run.telemetry.reportWaitEnd(open.for, ms);
    return true;
  }

  #stay(admitted: Exclude<Admitted, { readonly _tag: "admitted" }> | undefined): Departed {
    if (admitted?._tag === "too_long") return { _tag: "stays", for: admitted.for, waitMs: admitted.waitMs };
    this.#mayNotWait = true;
    return this.#asItStands;
  }

  get #asItStands(): Departed {
    const { budget, scope, shared } = this.#run;
    const { cooldownMs, path } = shared.paths.standing(scope, budget.max_retry_after_ms);
    return { _tag: "stays", for: path === "down" ? "path" : "cooldown", waitMs: cooldownMs };
  }

  /** Does not wait for the store. If a crash loses the entry, the run may only wait longer afterwards. */
  #record(entry: Entry): void {
    const run = this.#run;
    if (!run.ledger.ended) Effect.runForkWith(run.services)(run.write([entry]));
  }
}

/** Returns the failure of an attempt that was never sent. */
const failureOfStay = (departed: Extract<Departed, { readonly _tag: "stays" }>): Failure =>
  departed.for === "path"
    ? { kind: "transport", operation: "connect", code: pathDown }
    : { kind: "rate_limited", code: announcedCooldown, retry_after_ms: Math.ceil(departed.waitMs) };

/** Code of a request that was not sent because its path was down for longer than it may wait. */
const pathDown = "path_down";

/** Code of a request that was not sent because its provider announced a cooldown longer than it may wait. */
const announcedCooldown = "announced_cooldown";

/** The parts of a run that concern its path. */
interface Traveller {
  readonly scope: Scope;
  readonly budget: Budget;
  readonly shared: { readonly paths: PathsService };
  readonly going: Departure | undefined;
}

/**
 * Returns the path state and cooldown for a run's next request, as input of a decision. For a released request the path counts as up,
 * without a cooldown.
 */
export const standingOf = (run: Traveller): Pick<RunFacts, "path" | "waited_for_path" | "cooldown_ms"> => {
  const { going } = run;
  if (going?.isLetGo === true) return { path: "up", waited_for_path: going.hasWaitedForPath, cooldown_ms: 0 };
  const { cooldownMs, path } = run.shared.paths.standing(run.scope, run.budget.max_retry_after_ms);
  return {
    path: going?.hasFailedOnOpenPath === true ? "up" : path,
    waited_for_path: going?.hasWaitedForPath === true,
    cooldown_ms: Math.ceil(cooldownMs),
  };
};

/** Returns true if the path of a run is up, or was up when its request was released. */
export const isUp = (run: Traveller): boolean => standingOf(run).path === "up";

/** The parts of an attempt that concern its path. */
interface Travelled {
  readonly facts: { readonly snapshot: () => AttemptFacts };
  readonly isAnswered: boolean;
  readonly path: string;
}

/** Reports an attempt's findings to the paths. The caller handles a failed connect separately, because its path must be probed. */
export const tell = (run: Traveller, { facts, isAnswered, path }: Travelled, failure: Failure | undefined): void => {
  const { shared } = run;
  const scope = { ...run.scope, path };
  const { delivery } = facts.snapshot();
  if (!isAnswered && (delivery === "accepted" || failure?.status !== undefined)) shared.paths.recordResponse(scope);
  if (failure === undefined) return;
  const refusal = refusalOf(failure);
  if (refusal !== undefined) shared.paths.recordRefusal(scope, refusal);
  if (failure.kind === "transport" && failure.code !== pathLost && !isUnconnected(failure, delivery)) {
    // A connection that breaks was established before. So the address is right, even if no response head arrived.
    shared.paths.markReached(scope.path);
    shared.paths.recordBreak(scope);
  }
};

/** Returns a refusal if the provider announced a wait. */
const refusalOf = (failure: Failure): Refusal | undefined => {
  const { kind, only_this = false, retry_after_ms: waitMs } = failure;
  if (waitMs === undefined || failure.code === announcedCooldown) return undefined;
  if (kind === "rate_limited" || kind === "overloaded") return { kind, waitMs, onlyThis: only_this };
  const isBusy = kind === "server_error" && failure.status === 503 && failure.not_processed === true;
  return isBusy ? { kind: "overloaded", waitMs, onlyThis: only_this } : undefined;
};

/**
 * Returns true if no connection to the origin was made: the request was not sent, or the error occurs only while connecting. Certificate
 * errors count too, because a server other than the origin may have answered.
 */
export const isUnconnected = (failure: Failure, delivery: Delivery): boolean => {
  if (failure.code === pathDown || failure.code === pathLost) return false;
  if (failure.kind === "stalled") return failure.clock === "connect";
  if (failure.kind !== "transport") return false;
  const known = failure.code === undefined ? undefined : TransportCodes.lookup(failure.code);
  if (known?.meaning === "never") return known.operation === "connect";
  return delivery === "not_sent" || failure.operation === "connect" || known?.operation === "connect";
};
