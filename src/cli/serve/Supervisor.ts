/**
 * Serves with several worker processes behind one port: starts and replaces them, and forwards the operator's commands.
 *
 * The supervisor relays no bytes. The workers accept connections themselves (WorkerProcess.ts), share state through their store, and query
 * each other over their own sockets. A dead worker is replaced at once, or later if deaths follow each other (Restarts.ts). Another worker
 * is notified of the process that died, so that its runs are recovered without waiting for the lease. A worker that hangs (Pulse.ts) is
 * killed and then treated as dead. If the supervisor itself is killed, its workers see their pipe close and drain.
 */
import cluster from "node:cluster";
import { Clock, Deferred, Effect, Exit, References, type Scope } from "effect";
import { keepFixed } from "../../gateway/config/FixedOptions.ts";
import { GatewayError, type GatewaySettings } from "../../gateway/config/GatewayOptions.ts";
import { limits } from "../../gateway/config/Options.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import * as OpenPort from "../../gateway/OpenPort.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { freePort } from "./FreePort.ts";
import * as Generation from "./Generation.ts";
import * as ProgramWire from "./ProgramWire.ts";
import { turnMs, turnsMax } from "./Pulse.ts";
import * as Restarts from "./Restarts.ts";
import { fork, type Heard, prepare, type WorkerEnd, type WorkerProcess } from "./WorkerProcess.ts";
import * as WorkersFolder from "./WorkersFolder.ts";

/** The reason why the workers cannot continue. */
export interface GivenUp {
  /**
   * `refused`: the first start failed because of an invalid option. `store`: the first start could not open the store. `died`: a
   * worker died repeatedly.
   */
  readonly reason: "refused" | "store" | "died";
  readonly message: string;
}

/** A supervisor whose workers serve. It ends, and drains its workers, with the scope of `make`. */
export interface Supervisor {
  readonly url: string;
  /** Applies new options to all workers for future requests. Invalid options are applied to none. */
  readonly configure: (program: ProgramOptions, generation: number) => Effect.Effect<void, GatewayError>;
  /** Completes when the supervisor stops restarting workers, with the reason. */
  readonly givenUp: Effect.Effect<GivenUp>;
}

/** Time that a worker may take beyond `drainMs`, in milliseconds, to end and record the remaining runs. */
export const drainSlackMs = 10_000;

/** Timeout for a worker's count of remaining requests, in milliseconds. Workers normally send it at once. */
const tellMs = 1_000;

const configureMs = 10_000;

const inCluster =
  "workers: this process was started by node:cluster, for example by a process manager's cluster mode, and cannot start workers: use one worker, or start serve directly";

/** Starts the workers, which drain and end when the scope is closed. */
export const make = Effect.fn("Supervisor.make")(function* (
  given: ProgramOptions,
  settings: GatewaySettings,
  workers: number,
): Effect.fn.Return<Supervisor | GivenUp, GatewayError, Scope.Scope> {
  if (cluster.isWorker) return yield* new GatewayError({ reason: "bad_option", message: inCluster });
  const port = yield* freePort(settings);
  const folder = yield* WorkersFolder.make;
  const crew = new Crew({ ...given, port }, { workers, folder, logLevel: yield* References.MinimumLogLevel });
  const killAll = () => crew.killAll();
  yield* prepare;
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("exit", killAll)),
    () => Effect.sync(() => process.off("exit", killAll)),
  );
  yield* Effect.addFinalizer(() => drain(crew));
  const givenUp = yield* Deferred.make<GivenUp>();
  const first = yield* supervise(crew, 1, givenUp);
  if (typeof first !== "string") return first;
  // The first worker starts alone and creates the store for the others.
  const rest = Array.from({ length: workers - 1 }, (_, at) => at + 2);
  const started = yield* Effect.forEach(rest, (worker) => supervise(crew, worker, givenUp), {
    concurrency: "unbounded",
  });
  const failed = started.find((it) => typeof it !== "string");
  if (failed !== undefined) return failed;
  return {
    url: first,
    configure: (program, generation) => crew.configure({ ...program, port }, generation),
    givenUp: Deferred.await(givenUp),
  };
});

interface CrewPlace {
  readonly workers: number;
  readonly folder: string | undefined;
  readonly logLevel: string;
}

class Crew {
  readonly #place: CrewPlace;
  readonly #liveWorkers = new Map<number, WorkerProcess>();
  /** Names of dead processes whose runs no other worker has recovered yet. */
  readonly #unrecovered = new Set<string>();
  /** By worker number: called with the number of the configuration (`Generation`) that the worker has applied. */
  readonly #configuring = new Map<number, (generation: number) => void>();
  #generation = Generation.first;
  #program: ProgramOptions;

  constructor(program: ProgramOptions, place: CrewPlace) {
    this.#program = program;
    this.#place = place;
  }

  get liveWorkers(): ReadonlyArray<WorkerProcess> {
    return [...this.#liveWorkers.values()];
  }

  get isServing(): boolean {
    return this.liveWorkers.some(({ ready }) => Deferred.isDoneUnsafe(ready));
  }

  get drainMs(): number {
    return this.#program.limits?.drainMs ?? limits.drainMs.default;
  }

  killAll(): void {
    for (const { kill } of this.#liveWorkers.values()) kill();
  }

  start(worker: number): WorkerProcess {
    const started = fork(worker, (message) => this.#onMessage(started, message));
    this.#liveWorkers.set(worker, started);
    return started;
  }

  /** Sends the start message to a worker that listens to its pipe. */
  sendStart({ channel, process: name, worker }: WorkerProcess): void {
    const { folder, ...place } = this.#place;
    channel.order({
      _tag: "Start",
      ...{ ...place, worker, folder: folder ?? null, process: name },
      generation: this.#generation,
      program: ProgramWire.encode(this.#program),
    });
  }

  /** Tells a worker that now serves about the dead processes whose runs are not recovered yet. */
  onReady({ channel }: WorkerProcess): void {
    for (const name of this.#unrecovered) channel.order({ _tag: "Ended", process: name });
  }

  /** Removes a dead worker, and asks another worker to recover its runs. */
  onExit({ process: name, worker }: WorkerProcess): void {
    this.#liveWorkers.delete(worker);
    this.#unrecovered.add(name);
    // One worker is enough: if it dies too, its replacement is notified again.
    const able = this.liveWorkers.find(({ ready }) => Deferred.isDoneUnsafe(ready));
    able?.channel.order({ _tag: "Ended", process: name });
  }

  #onMessage({ worker }: WorkerProcess, message: Heard): void {
    if (message._tag === "Recovered") this.#unrecovered.delete(message.process);
    else this.#configuring.get(worker)?.(message.generation);
  }

  /**
   * Validates options as a worker would, and sends the same options to all workers. Later replacements start with the new options, except
   * that options that need a restart keep their original values.
   */
  readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: Crew, program: ProgramOptions, generation: number) {
      const before = this.#program;
      const next = keepFixed(before, program);
      yield* OpenPort.check(next);
      this.#program = next;
      this.#generation = generation;
      const configureOne = (worker: WorkerProcess) => this.#configure(worker, generation, ProgramWire.encode(next));
      yield* Effect.forEach(this.liveWorkers, configureOne, { concurrency: "unbounded", discard: true });
    },
  );

  /** Waits until a worker has applied new options. If it dies instead, its replacement starts with them. */
  #configure({ channel, exited, worker }: WorkerProcess, generation: number, program: unknown): Effect.Effect<void> {
    const replied = Effect.callback<void>((resume) => {
      this.#configuring.set(worker, (taken) => {
        if (taken === generation) resume(Effect.void);
      });
      channel.order({ _tag: "Configure", generation, program });
      return Effect.sync(() => this.#configuring.delete(worker));
    });
    const late = Effect.sleep(configureMs);
    return Effect.raceAllFirst([replied, late, Effect.asVoid(Deferred.await(exited))]);
  }
}

/**
 * Starts a worker and, from then on, each of its replacements.
 *
 * @returns the URL of the first worker that listens, or the reason why none does
 */
const supervise = Effect.fnUntraced(function* (
  crew: Crew,
  worker: number,
  givenUp: Deferred.Deferred<GivenUp>,
): Effect.fn.Return<string | GivenUp, never, Scope.Scope> {
  const first = yield* Deferred.make<string | GivenUp>();
  const keeping = Effect.gen(function* () {
    let deaths = Restarts.none;
    for (;;) {
      const { end, isOrdered, servedMs, url } = yield* runWorkerOnce(crew, worker, first);
      const isFirst = url === undefined && !(yield* Deferred.isDone(first));
      if (isFirst && end.refused !== undefined)
        return { reason: end.refused.mayPass ? "store" : "refused", message: end.refused.message } as const;
      const mayPass = end.refused?.mayPass === true;
      const next = Restarts.decideReplacement(deaths, {
        servedMs,
        mayPass,
        isOrdered,
        isAlone: isFirst || !crew.isServing,
      });
      const how = end.refused?.message ?? end.how;
      if (next === "give_up") {
        const message = `worker ${worker} has ended ${Restarts.deathsMax} times in a row; the last cause: ${how}`;
        return { reason: "died", message } as const;
      }
      deaths = next.deaths;
      yield* Effect.logError("a worker ended and is being replaced", { worker, how, pause_ms: next.pauseMs });
      if (next.pauseMs > 0) yield* Effect.sleep(next.pauseMs);
    }
  });
  const given = Effect.flatMap(keeping, (why) =>
    Effect.andThen(Deferred.succeed(givenUp, why), Deferred.succeed(first, why)),
  );
  yield* Effect.forkScoped(given, { startImmediately: true });
  return yield* Deferred.await(first);
});

const runWorkerOnce = Effect.fnUntraced(function* (
  crew: Crew,
  worker: number,
  first: Deferred.Deferred<string | GivenUp>,
) {
  const clock = yield* Clock.Clock;
  const started = crew.start(worker);
  const ended: Effect.Effect<{ readonly end: WorkerEnd }> = Effect.map(Deferred.await(started.exited), (end) => ({
    end,
  }));
  const answers = yield* Effect.raceFirst(Deferred.await(started.hello), Effect.as(ended, false));
  crew.sendStart(started);
  const url = yield* Effect.raceFirst(Deferred.await(started.ready), Effect.as(ended, undefined));
  const readyAt = monotonicMs(clock);
  if (url !== undefined) {
    crew.onReady(started);
    yield* Effect.logInfo("a worker is ready", { worker, pid: started.pid });
    yield* Deferred.succeed(first, url);
  }
  const { end } = yield* url === undefined || !answers ? ended : Effect.raceFirst(ended, killWhenHanging(started));
  crew.onExit(started);
  const isOrdered = Deferred.isDoneUnsafe(started.draining) && end.isClean;
  return { end, isOrdered, url, servedMs: url === undefined ? 0 : monotonicMs(clock) - readyAt };
});

/**
 * Kills a worker that hangs. A starting worker is not watched, because preparing the tables of a large store may keep it busy for a long
 * time.
 */
const killWhenHanging = Effect.fnUntraced(function* ({ channel, kill, pid, pulse, worker }: WorkerProcess) {
  for (;;) {
    yield* Effect.sleep(turnMs);
    const turn = pulse.advance();
    if (turn === "ask") channel.order({ _tag: "Ping" });
    if (turn !== "hangs") continue;
    const said = `killing a worker that hangs: it has not answered for ${(turnsMax * turnMs) / 1_000} s`;
    yield* Effect.logError(said, { worker, pid });
    // A suspended terminal blocks every process that writes to it, including this one. In the extra turn this process reads answers that
    // arrived meanwhile.
    yield* Effect.sleep(turnMs);
    if (!pulse.isHanging) {
      yield* Effect.logInfo("the worker answers again and continues", { worker, pid });
      continue;
    }
    kill();
    return yield* Effect.never;
  }
});

/** Drains the workers. Workers that exceed the limit are killed. */
const drain = Effect.fnUntraced(function* (crew: Crew) {
  const workers = crew.liveWorkers;
  for (const { channel } of workers) channel.order({ _tag: "Drain" });
  const open = yield* Effect.forEach(
    workers,
    ({ draining, exited }) =>
      Effect.raceFirst(Deferred.await(draining), Effect.as(Deferred.await(exited), 0)).pipe(
        Effect.timeoutOrElse({ duration: tellMs, orElse: () => Effect.succeed(0) }),
        Effect.interruptible,
      ),
    { concurrency: "unbounded" },
  );
  const left = open.reduce((sum, it) => sum + it, 0);
  if (left > 0) yield* Effect.logInfo(`finishing ${left} requests; a second signal exits at once`);
  const all = Effect.forEach(workers, ({ exited }) => Deferred.await(exited), { concurrency: "unbounded" });
  const inTime = yield* Effect.exit(Effect.timeout(Effect.interruptible(all), crew.drainMs + drainSlackMs));
  if (Exit.isSuccess(inTime)) return;
  crew.killAll();
  yield* all;
});
