/**
 * Serves by several processes behind one port: starts them, replaces those that die, and tells them what an operator tells it.
 *
 * It relays no byte of a client: the workers accept connections themselves (WorkerProcess.ts). What they say to each other goes through
 * it (BusRouter.ts). A worker that has died is replaced at once, or later where deaths follow each other (Restarts.ts), and a sibling is
 * told which process it was, so that its runs are recovered without waiting for its lease. One that hangs (Pulse.ts) is killed, and is
 * one that has died from then on. Where the supervisor itself is killed, its
 * workers see their pipe end, take nothing new and end when what runs has ended.
 */
import cluster from "node:cluster";
import { randomBytes, randomInt } from "node:crypto";
import { createServer } from "node:net";
import { Clock, Deferred, Effect, Exit, Redacted, References, type Scope } from "effect";
import * as SharedMetrics from "../../gateway/api/SharedMetrics.ts";
import { asStarted } from "../../gateway/config/FixedOptions.ts";
import { GatewayError, type GatewaySettings } from "../../gateway/config/GatewayOptions.ts";
import { limits } from "../../gateway/config/Options.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import * as OpenPort from "../../gateway/OpenPort.ts";
import type { BusEnvelope } from "../../gateway/workers/BusEnvelope.ts";
import { BusRouter } from "../../gateway/workers/BusRouter.ts";
import { portTo } from "../../gateway/workers/ProcessChannel.ts";
import * as WorkerBus from "../../gateway/workers/WorkerBus.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import * as ProgramWire from "./ProgramWire.ts";
import { turnMs, turnsMax } from "./Pulse.ts";
import * as Restarts from "./Restarts.ts";
import { fork, type Heard, prepare, type WorkerEnd, type WorkerProcess } from "./WorkerProcess.ts";
import * as WorkersFolder from "./WorkersFolder.ts";

/** The workers cannot go on. */
export interface GivenUp {
  /** `refused` by the first start: an option that cannot be, or `store`: it cannot be opened now. `died`: again and again. */
  readonly reason: "refused" | "store" | "died";
  readonly message: string;
}

/** A supervisor whose workers serve. */
export interface Supervisor {
  readonly url: string;
  /** Gives all workers other options, for the requests that come from now on. */
  readonly configure: (program: ProgramOptions) => Effect.Effect<ReadonlyArray<string>, GatewayError>;
  /** Ends when the workers cannot go on. */
  readonly givenUp: Effect.Effect<GivenUp>;
}

/** How much longer than `drainMs` a worker may take to end: it ends what remains, and writes that down. */
export const drainSlackMs = 10_000;

/** Workers say at once how much they finish. */
const tellMs = 1_000;

/** A worker takes a configuration within so long, in milliseconds. */
const configureMs = 10_000;

const inCluster =
  "workers: this process was started by node:cluster, as by a process manager's cluster mode, and can start none: serve with one worker, or start it by itself";

/** Starts so many workers. They drain, and end, when the scope is closed. */
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
  yield* Effect.addFinalizer(() => drained(crew));
  yield* member(crew);
  const givenUp = yield* Deferred.make<GivenUp>();
  const first = yield* kept(crew, 1, givenUp);
  if (typeof first !== "string") return first;
  // One after the other the first has made the store; the others find it made.
  const rest = Array.from({ length: workers - 1 }, (_, at) => at + 2);
  const started = yield* Effect.forEach(rest, (worker) => kept(crew, worker, givenUp), { concurrency: "unbounded" });
  const failed = started.find((it) => typeof it !== "string");
  if (failed !== undefined) return failed;
  return {
    url: first,
    configure: (program) => crew.configure({ ...program, port: port }),
    givenUp: Deferred.await(givenUp),
  };
});

/** The supervisor takes part in what its workers say to each other: it keeps what must outlive any of them. */
const member = Effect.fnUntraced(function* ({ folder, router, secret }: Crew) {
  const self = WorkerBus.supervisor;
  const port = { send: (envelope: BusEnvelope) => router.route(self, envelope) };
  const end = yield* WorkerBus.make({ self, folder, workers: 0, secret: Redacted.make(secret) }, port);
  router.join(self, {
    send: (envelope) => {
      end.receive(envelope);
      return true;
    },
  });
  yield* Effect.provideService(SharedMetrics.keeping, WorkerBus.WorkerBus, end.bus);
});

/**
 * Ports below those that a system hands out by itself: Linux begins at 32,768 (`ip_local_port_range`), other systems at 49,152 (RFC 6335,
 * section 6), and Kubernetes keeps 30,000 to 32,767 for its services. Between the look for a free port and the first worker's start a
 * connection may be given any port that the system hands out.
 */
const quietPorts = { first: 20_000, last: 29_999 } as const;

/** How many of them are tried, before any port is good enough. */
const triesMax = 16;

/**
 * The port that all workers listen on. It is looked for here, so that one which is taken is said once, and so that workers which come
 * later find the port of the first where any was wanted.
 */
const freePort = ({ host, port }: GatewaySettings): Effect.Effect<number, GatewayError> =>
  port === 0 ? anyPort(host, triesMax) : openPort(host, port);

const anyPort = (host: string, tries: number): Effect.Effect<number, GatewayError> =>
  tries === 0
    ? openPort(host, 0)
    : Effect.catch(
        Effect.suspend(() => openPort(host, randomInt(quietPorts.first, quietPorts.last + 1))),
        () => anyPort(host, tries - 1),
      );

const openPort = (host: string, port: number): Effect.Effect<number, GatewayError> =>
  Effect.callback((resume) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}:${port} (${error.code ?? "unknown"})`;
      resume(Effect.fail(new GatewayError({ reason: "cannot_listen", message })));
    });
    server.listen(port, host, () => {
      const address = server.address();
      const found = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resume(Effect.succeed(found)));
    });
  });

interface CrewPlace {
  readonly workers: number;
  readonly folder: string | undefined;
  readonly logLevel: string;
}

/** The workers as they are now. */
class Crew {
  readonly router = new BusRouter();
  readonly secret = randomBytes(32).toString("hex");
  readonly folder: string | undefined;
  readonly #workers: number;
  readonly #logLevel: string;
  readonly #living = new Map<number, WorkerProcess>();
  /** Names of processes that have died and whose runs no sibling has recovered yet. */
  readonly #unrecovered = new Set<string>();
  readonly #configuring = new Map<number, (said: Extract<Heard, { readonly _tag: "Configured" }>) => void>();
  #configurations = 0;
  #program: ProgramOptions;

  constructor(program: ProgramOptions, { folder, logLevel, workers }: CrewPlace) {
    this.#program = program;
    this.folder = folder;
    this.#workers = workers;
    this.#logLevel = logLevel;
  }

  get living(): ReadonlyArray<WorkerProcess> {
    return [...this.#living.values()];
  }

  /** Whether one of them serves. */
  get serves(): boolean {
    return this.living.some(({ ready }) => Deferred.isDoneUnsafe(ready));
  }

  get drainMs(): number {
    return this.#program.limits?.drainMs ?? limits.drainMs.default;
  }

  killAll(): void {
    for (const { kill } of this.#living.values()) kill();
  }

  /** Starts a worker; it has said nothing yet. */
  start(worker: number): WorkerProcess {
    const started = fork(worker, (message) => this.#heard(started, message));
    this.#living.set(worker, started);
    return started;
  }

  /** The worker listens to its pipe. */
  greeted({ channel, process: name, worker }: WorkerProcess): void {
    channel.order({
      _tag: "Start",
      ...{ worker, workers: this.#workers, process: name, secret: this.secret, logLevel: this.#logLevel },
      folder: this.folder ?? null,
      program: ProgramWire.encode(this.#program),
    });
  }

  /** The worker serves. */
  joined({ channel, worker }: WorkerProcess): void {
    this.router.join(worker, portTo(channel));
    for (const name of this.#unrecovered) channel.order({ _tag: "Ended", process: name });
  }

  /** The worker has died. */
  ended({ process: name, worker }: WorkerProcess): void {
    this.#living.delete(worker);
    this.router.leave(worker);
    this.#unrecovered.add(name);
    this.#tellOfEnded(name);
  }

  /** One sibling is enough: where it dies too, its replacement is told again. */
  #tellOfEnded(name: string): void {
    const able = this.living.find(({ ready }) => Deferred.isDoneUnsafe(ready));
    able?.channel.order({ _tag: "Ended", process: name });
  }

  #heard({ worker }: WorkerProcess, message: Heard): void {
    if (message._tag === "Bus") this.router.route(worker, message.envelope);
    else if (message._tag === "Recovered") this.#unrecovered.delete(message.process);
    else this.#configuring.get(worker)?.(message);
  }

  /**
   * Every worker has the same options before and after: they are checked here, as each of them checks them, so that a worker which takes a
   * place starts with options that can be, and with those that need a restart as its siblings have them.
   */
  readonly configure = Effect.fnUntraced({ self: this }, function* (this: Crew, program: ProgramOptions) {
    const before = this.#program;
    const next = asStarted(before, program);
    yield* OpenPort.check(next);
    this.#configurations += 1;
    const id = this.#configurations;
    this.#program = next;
    const encoded = ProgramWire.encode(program);
    const said = yield* Effect.forEach(this.living, (worker) => this.#configured(worker, id, encoded), {
      concurrency: "unbounded",
    });
    const wrong = said.find((it) => it?.wrong !== undefined)?.wrong;
    if (wrong !== undefined) {
      this.#program = before;
      return yield* new GatewayError({ reason: "bad_option", message: wrong });
    }
    return [...new Set(said.flatMap((it) => it?.restarts ?? []))];
  });

  /** What a worker says of new options; undefined for one that dies meanwhile, whose replacement starts with them. */
  #configured({ channel, exited, worker }: WorkerProcess, id: number, program: unknown) {
    const replied = Effect.callback<Extract<Heard, { readonly _tag: "Configured" }>>((resume) => {
      this.#configuring.set(worker, (said) => {
        if (said.id === id) resume(Effect.succeed(said));
      });
      channel.order({ _tag: "Configure", id, program });
      return Effect.sync(() => this.#configuring.delete(worker));
    });
    return Effect.raceFirst(
      Effect.timeoutOrElse(replied, { duration: configureMs, orElse: () => Effect.undefined }),
      Effect.as(Deferred.await(exited), undefined),
    );
  }
}

/**
 * Starts a worker and, from then on, each one that takes its place.
 *
 * @returns where the first one listens, or why none does
 */
const kept = Effect.fnUntraced(function* (
  crew: Crew,
  worker: number,
  givenUp: Deferred.Deferred<GivenUp>,
): Effect.fn.Return<string | GivenUp, never, Scope.Scope> {
  const first = yield* Deferred.make<string | GivenUp>();
  const keeping = Effect.gen(function* () {
    let deaths = Restarts.none;
    for (;;) {
      const { end, isOrdered, servedMs, url } = yield* life(crew, worker, first);
      // The gateway has not started yet.
      const isFirst = url === undefined && !(yield* Deferred.isDone(first));
      if (isFirst && end.refused !== undefined)
        return { reason: end.refused.mayPass ? "store" : "refused", message: end.refused.message } as const;
      const mayPass = end.refused?.mayPass === true;
      const next = Restarts.died(deaths, { servedMs, mayPass, isOrdered, isAlone: isFirst || !crew.serves });
      const how = end.refused?.message ?? end.how;
      if (next === "give_up") {
        const message = `worker ${worker} has ended ${Restarts.deathsMax} times in a row, the last time so: ${how}`;
        return { reason: "died", message } as const;
      }
      deaths = next.deaths;
      yield* Effect.logError("a worker has ended, and is replaced", { worker, how, pause_ms: next.pauseMs });
      if (next.pauseMs > 0) yield* Effect.sleep(next.pauseMs);
    }
  });
  const given = Effect.flatMap(keeping, (why) =>
    Effect.andThen(Deferred.succeed(givenUp, why), Deferred.succeed(first, why)),
  );
  yield* Effect.forkScoped(given, { startImmediately: true });
  return yield* Deferred.await(first);
});

/** One worker from its start to its end. */
const life = Effect.fnUntraced(function* (crew: Crew, worker: number, first: Deferred.Deferred<string | GivenUp>) {
  const clock = yield* Clock.Clock;
  const started = crew.start(worker);
  const ended: Effect.Effect<{ readonly end: WorkerEnd }> = Effect.map(Deferred.await(started.exited), (end) => ({
    end,
  }));
  const answers = yield* Effect.raceFirst(Deferred.await(started.hello), Effect.as(ended, false));
  crew.greeted(started);
  const url = yield* Effect.raceFirst(Deferred.await(started.ready), Effect.as(ended, undefined));
  const readyAt = monotonicMs(clock);
  if (url !== undefined) {
    crew.joined(started);
    yield* Effect.logInfo("a worker serves", { worker, pid: started.pid });
    yield* Deferred.succeed(first, url);
  }
  const { end } = yield* url === undefined || !answers ? ended : Effect.raceFirst(ended, watched(started));
  crew.ended(started);
  const isOrdered = Deferred.isDoneUnsafe(started.draining) && end.isClean;
  return { end, isOrdered, url, servedMs: url === undefined ? 0 : monotonicMs(clock) - readyAt };
});

/** Kills a worker that hangs. While it starts it may be busy for long, with the tables of a large store. */
const watched = Effect.fnUntraced(function* ({ channel, kill, pid, pulse, worker }: WorkerProcess) {
  for (;;) {
    yield* Effect.sleep(turnMs);
    const turn = pulse.turn();
    if (turn === "ask") channel.order({ _tag: "Ping" });
    if (turn !== "hangs") continue;
    const said = `a worker hangs, and is killed: it has not answered for ${(turnsMax * turnMs) / 1_000} s`;
    yield* Effect.logError(said, { worker, pid });
    // A terminal that is stopped holds up whoever writes to it, this process too: what was answered meanwhile is read in one more turn.
    yield* Effect.sleep(turnMs);
    if (!pulse.hangs) {
      yield* Effect.logInfo("the worker answers, and goes on", { worker, pid });
      continue;
    }
    kill();
    return yield* Effect.never;
  }
});

/** Every worker takes no more, finishes what runs, and ends. */
const drained = Effect.fnUntraced(function* (crew: Crew) {
  const workers = crew.living;
  for (const { channel } of workers) channel.order({ _tag: "Drain" });
  const told = yield* Effect.forEach(
    workers,
    ({ draining, exited }) =>
      Effect.raceFirst(Deferred.await(draining), Effect.as(Deferred.await(exited), 0)).pipe(
        Effect.timeoutOrElse({ duration: tellMs, orElse: () => Effect.succeed(0) }),
        Effect.interruptible,
      ),
    { concurrency: "unbounded" },
  );
  const left = told.reduce((sum, it) => sum + it, 0);
  if (left > 0) yield* Effect.logInfo(`finishing ${left} requests; a second signal ends at once`);
  const all = Effect.forEach(workers, ({ exited }) => Deferred.await(exited), { concurrency: "unbounded" });
  const inTime = yield* Effect.exit(Effect.timeout(Effect.interruptible(all), crew.drainMs + drainSlackMs));
  if (Exit.isSuccess(inTime)) return;
  crew.killAll();
  yield* all;
});
