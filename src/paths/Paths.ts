/**
 * Tracks if each path of this process is up, down or cooling down, and releases requests when they may be sent.
 *
 * One service serves all runs. Runs ask it before every request and report the result; transports report how a path can be probed.
 *
 * `PathTable` holds the state and decides in one step, without a fiber; this module provides the clock, the timer and the probes. One timer
 * serves all paths, and there is no timer while every path is up. Timer and probes are forked from synchronous code, in the step that needs
 * them, so that a request on a path that is down does not wait for another fiber.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Random from "effect/Random";
import type * as Scope from "effect/Scope";
import * as Json from "../domain/Json.ts";
import { label } from "../domain/Limits.ts";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import type { Admission, Admitted, PathsService } from "./Admission.ts";
import type { DueProbe, TableWorld } from "./Entry.ts";
import type { PathWay, Probed } from "./Path.ts";
import { PathTable } from "./PathTable.ts";

export type {
  Admission,
  Admitted,
  PathStatus,
  PathsService,
  Refusal,
  Scope,
  Wait,
} from "./Admission.ts";

/** Maximum duration of a probe, in milliseconds, if its transport sets no limit. */
const probeMaxMs = 15_000;

const failedProbe = (code: string): Probed => ({ _tag: "failed", reason: "network", code });

/** Reads the result of a probe. An untyped caller may return anything, so an unknown result counts as failed. */
const readProbed = (found: unknown): Probed => {
  const it = Json.record(found);
  if (it?._tag === "works") return { _tag: "works" };
  if (it?._tag !== "failed") return failedProbe("probe_unreadable");
  const reason = it.reason === "certificate" ? "certificate" : "network";
  return { _tag: "failed", reason, ...(typeof it.code === "string" ? { code: label(it.code) } : {}) };
};

/** Returns the probe of a path. A transport in plain JavaScript may return a value that is not an effect. */
const probeOf = (way: PathWay): Effect.Effect<unknown> => {
  const probe: unknown = way.probe;
  return Effect.isEffect(probe) ? way.probe : Effect.die(new TypeError("probe: expected an Effect"));
};

/** Probes a path. A probe that dies or hangs counts as failed, and a probe that cannot be interrupted is abandoned. */
const runProbe = (way: PathWay): Effect.Effect<Probed> =>
  Effect.flatMap(
    Effect.forkDetach(
      Effect.suspend(() => probeOf(way)),
      { startImmediately: true },
    ),
    (asking) => {
      const found = Effect.map(Fiber.await(asking), (exit) =>
        Exit.isSuccess(exit) ? readProbed(exit.value) : failedProbe("probe_died"),
      );
      const late = Effect.as(Effect.sleep(Duration.millis(probeMaxMs)), failedProbe("probe_timeout"));
      return Effect.ensuring(
        Effect.raceFirst(found, late),
        Effect.sync(() => asking.interruptUnsafe()),
      );
    },
  );

/** Callbacks to the other processes of the same store, with which this process shares its findings. */
export type Siblings = Pick<TableWorld, "reportFinding" | "processCount">;

/** The paths of one of several processes, and the methods that take the findings of the other processes. */
export interface PathsAmong extends Pick<PathTable, "onFinding" | "recordRefusal"> {
  readonly own: PathsService;
}

/** Serves a table: runs its timer, and probes the paths whose probe is due. */
class Keeper {
  readonly table: PathTable;
  readonly #clock: Clock.Clock;
  readonly #fork: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>;
  readonly #probes = new Set<Fiber.Fiber<void>>();
  #timer: Fiber.Fiber<void> | undefined;
  /** Time at which the timer fires; infinite if there is no timer. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(services: Context.Context<never>, clock: Clock.Clock, random: () => number, siblings?: Siblings) {
    this.#clock = clock;
    this.#fork = Effect.runForkWith(services);
    this.table = new PathTable({
      now: () => monotonicMs(clock),
      wallNow: () => clock.currentTimeMillisUnsafe(),
      jitter: random,
      onDue: (at) => this.#scheduleWake(at),
      probe: (due) => this.#probe(due),
      onError: (error) =>
        void this.#fork(Effect.logError("cannot notify a waiting run that the state of its path changed", error)),
      ...siblings,
    });
  }

  close(): void {
    this.#closed = true;
    this.table.close();
    this.#timer?.interruptUnsafe();
    for (const probe of this.#probes) probe.interruptUnsafe();
  }

  #scheduleWake(at: number): void {
    if (this.#closed || at >= this.#wakesAt) return;
    this.#timer?.interruptUnsafe();
    this.#wakesAt = at;
    const ms = Math.max(1, Math.ceil(at - monotonicMs(this.#clock)));
    this.#timer = this.#fork(
      Effect.andThen(
        Effect.sleep(Duration.millis(ms)),
        Effect.sync(() => this.#wake()),
      ),
    );
  }

  #wake(): void {
    this.#timer = undefined;
    // Prevents timers during `runDue`. One timer is set afterwards, for all work that `runDue` has planned.
    this.#wakesAt = Number.NEGATIVE_INFINITY;
    // Read before `runDue`, which does not handle work that becomes due while it runs. `nextAt` still finds that work below.
    const from = monotonicMs(this.#clock);
    this.table.runDue();
    this.#wakesAt = Number.POSITIVE_INFINITY;
    this.#scheduleWake(this.table.nextAt(from));
  }

  #probe(due: DueProbe): void {
    if (this.#closed) return;
    const probe = this.#fork(Effect.map(runProbe(due.way), (found) => this.table.recordProbe(due, found)));
    this.#probes.add(probe);
    probe.addObserver(() => void this.#probes.delete(probe));
  }
}

const serviceOf = (table: PathTable): PathsService => ({
  attach: (path, way) => table.attach(path, way),
  markReached: (path) => table.markReached(path),
  hasReached: (path) => table.hasReached(path),
  standing: (scope, maxRetryAfterMs) => table.standingOf(scope, maxRetryAfterMs),
  isOpen: (scope) => table.isOpen(scope),
  admit: (admission) => admit(table, admission),
  recordResponse: (scope) => table.recordResponse(scope),
  recordRefusal: (scope, refusal) => table.recordRefusal(scope, refusal),
  recordConnectFailure: (scope, code) =>
    Effect.callback<void>((resume) => {
      const leave = table.recordConnectFailure(scope, code, () => resume(Effect.void));
      return Effect.sync(leave);
    }),
  recordBreak: (scope) => table.recordBreak(scope),
  isLost: (path) =>
    Effect.callback<boolean>((resume) => {
      const leave = table.isLost(path, (lost) => resume(Effect.succeed(lost)));
      return Effect.sync(leave);
    }),
  onWake: () => table.onWake(),
  tryNow: (path) =>
    Effect.callback<boolean>((resume) => {
      const leave = table.tryNow(path, (known) => resume(Effect.succeed(known)));
      return Effect.sync(leave);
    }),
  list: () => table.list(),
});

/** An interruption removes a waiting request. If the request was released in the same step, the interruption frees its slot. */
const admit = (table: PathTable, admission: Admission): Effect.Effect<Admitted> =>
  Effect.callback<Admitted>((resume) => {
    const leave = table.admit(admission, (admitted) => resume(Effect.succeed(admitted)));
    return Effect.sync(leave);
  });

/** Creates the table of a process. Its timer and its probes end with the scope. */
const makeTable = Effect.fnUntraced(function* (siblings?: Siblings): Effect.fn.Return<PathTable, never, Scope.Scope> {
  const random = yield* Random.Random;
  const services = yield* Effect.context<never>();
  const keeper = new Keeper(services, yield* Clock.Clock, () => random.nextDoubleUnsafe(), siblings);
  yield* Effect.addFinalizer(() => Effect.sync(() => keeper.close()));
  return keeper.table;
});

const make: Effect.Effect<PathsService, never, Scope.Scope> = Effect.map(makeTable(), serviceOf);

/** Creates the paths of one of several processes that share their findings. */
export const makeAmong = (siblings: Siblings): Effect.Effect<PathsAmong, never, Scope.Scope> =>
  Effect.map(makeTable(siblings), (table) => ({
    own: serviceOf(table),
    onFinding: (path, word) => table.onFinding(path, word),
    recordRefusal: (scope, refusal, agoMs) => table.recordRefusal(scope, refusal, agoMs),
  }));

/** Decides when requests may be sent on the paths of a process. */
export class Paths extends Context.Service<Paths, PathsService>()("effect-stream-recovery/Paths") {
  /** Creates the paths of a process. Their timer and their probes end with the scope. */
  static readonly make = make;

  /** Provides one service, shared by all users of the layer. */
  static readonly layer: Layer.Layer<Paths> = Layer.effect(Paths, make);
}
