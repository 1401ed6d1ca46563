/**
 * Knows of every path of this process whether it is up, down or cooling, and lets requests go when they may.
 *
 * One service for all runs. Runs ask it before every request and tell it what they meet; transports tell it how a path can be asked.
 * What is known stands in `PathTable`, which decides in one step and has no fiber; here are its clock, its timer and its probes. One
 * fiber serves all paths. It sleeps until the table has something to do, and without a timer while every path is up.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Random from "effect/Random";
import * as Scope from "effect/Scope";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import type { Admission, Admitted, PathsService } from "./Admission.ts";
import type { PathWay, Probed } from "./Path.ts";
import { PathTable } from "./PathTable.ts";

export type {
  Admission,
  Admitted,
  PathStatus,
  PathsService,
  Refusal,
  Scope,
  Standing,
  Wait,
} from "./Admission.ts";

/** Longest that a probe may take, in milliseconds, should its transport set no limit. */
const probeMaxMs = 15_000;

/** Asks a path. A probe that dies or hangs has failed. */
const ask = (way: PathWay): Effect.Effect<Probed> =>
  way.probe.pipe(
    Effect.timeoutOption(Duration.millis(probeMaxMs)),
    Effect.exit,
    Effect.map((exit): Probed => {
      if (Exit.isFailure(exit)) return { _tag: "failed", reason: "network", code: "probe_died" };
      return Option.getOrElse(exit.value, (): Probed => ({ _tag: "failed", reason: "network", code: "probe_timeout" }));
    }),
  );

/** The fiber that serves a table: it starts probes, lets requests go, and sleeps until there is something to do. */
class Keeper {
  readonly #clock: Clock.Clock;
  readonly table: PathTable;
  #wake = Deferred.makeUnsafe<void>();
  /** When the fiber is to wake; infinite while it waits to be woken. */
  #wakesAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock.Clock, seed: () => number) {
    this.#clock = clock;
    this.table = new PathTable({
      now: () => monotonicMs(clock),
      wall: () => clock.currentTimeMillisUnsafe(),
      jitter: seed,
      due: (at) => {
        if (at >= this.#wakesAt) return;
        this.#wakesAt = at;
        Deferred.doneUnsafe(this.#wake, Effect.void);
      },
    });
  }

  serve(scope: Scope.Scope): Effect.Effect<never> {
    return Effect.forever(
      Effect.suspend(() => {
        this.#wake = Deferred.makeUnsafe<void>();
        this.#wakesAt = Number.NEGATIVE_INFINITY;
        const probes = this.table.look();
        const at = this.table.nextAt();
        this.#wakesAt = at;
        const started = Effect.forEach(
          probes,
          ({ path, way }) =>
            Effect.forkIn(
              Effect.flatMap(ask(way), (found) => Effect.sync(() => this.table.probed(path, found))),
              scope,
            ),
          { discard: true },
        );
        const woken = Deferred.await(this.#wake);
        if (at === Number.POSITIVE_INFINITY) return Effect.andThen(started, woken);
        const sleep = Effect.sleep(Duration.millis(Math.max(0, Math.ceil(at - monotonicMs(this.#clock)))));
        return Effect.andThen(started, Effect.raceFirst(woken, sleep));
      }).pipe(
        // One run whose listener dies must not leave all others waiting.
        Effect.catchDefect((defect) => Effect.logError("a waiting run could not be told of its path", defect)),
      ),
    );
  }
}

/** The service over a table. */
const serviceOf = (table: PathTable): PathsService => ({
  attach: (path, way) => table.attach(path, way),
  wasReached: (path) => table.wasReached(path),
  hasReached: (path) => table.hasReached(path),
  standing: (scope, maxRetryAfterMs) => table.standing(scope, maxRetryAfterMs),
  isOpen: (scope) => table.isOpen(scope),
  admit: (admission) => admit(table, admission),
  answered: (scope) => table.answered(scope),
  refused: (scope, refusal) => table.refused(scope, refusal),
  unconnected: (scope, code) =>
    Effect.callback<void>((resume) => {
      const leave = table.unconnected(scope, code, () => resume(Effect.void));
      return Effect.sync(leave);
    }),
  broke: (scope) => table.broke(scope),
  isLost: (path) =>
    Effect.callback<boolean>((resume) => {
      const leave = table.isLost(path, (lost) => resume(Effect.succeed(lost)));
      return Effect.sync(leave);
    }),
  woke: () => table.woke(),
  tryNow: (path) =>
    Effect.callback<boolean>((resume) => {
      const leave = table.tryNow(path, (known) => resume(Effect.succeed(known)));
      return Effect.sync(leave);
    }),
  list: () => table.list(),
});

/** An interruption removes the request where it waits, and gives its place back where it was let go in the same step. */
const admit = (table: PathTable, admission: Admission): Effect.Effect<Admitted> =>
  Effect.callback<Admitted>((resume) => {
    const leave = table.admit(admission, (admitted) => resume(Effect.succeed(admitted)));
    return Effect.sync(leave);
  });

/** Makes the paths of a process; their fiber and their probes end with the scope. */
const make: Effect.Effect<PathsService, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Scope.Scope;
  const random = yield* Random.Random;
  const keeper = new Keeper(yield* Clock.Clock, () => random.nextDoubleUnsafe());
  yield* Effect.forkScoped(keeper.serve(scope));
  return serviceOf(keeper.table);
});

/** The paths of a process. */
export class Paths extends Context.Service<Paths, PathsService>()("effect-stream-recovery/Paths") {
  /** Makes the paths of a process; their fiber and their probes end with the scope. */
  static readonly make = make;

  /** One for all that share it. */
  static readonly layer: Layer.Layer<Paths> = Layer.effect(Paths, make);
}
