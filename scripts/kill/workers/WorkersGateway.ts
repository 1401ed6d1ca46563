/**
 * Is the gateway of a plan: its supervisor, the one that takes its place, and all the processes that either has started.
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Effect, type Scope } from "effect";
import { type Known, workersOf } from "../../../test/cli/Workers.ts";
import { polled } from "../../../test/Polling.ts";
import { freePort, Gateway } from "../../cluster/Gateways.ts";
import { leaseMs, lingerMs } from "../streams/StreamStates.ts";
import type { WorkersPlan } from "./WorkersPlan.ts";

/** Longest that a start may take to be tried again, in milliseconds. */
const succeedMsMax = 60_000;

/** Longest that a lock of another process is waited for, in milliseconds. */
const lockMsMax = 5_000;

/** All threads of a process that is stopped stand within so long, and a commit of a process that runs is over, in milliseconds. */
const [stoppedWithinMs, freeMsMax] = [100, 2_000];

/** A gateway that a plan is played with. */
export class WorkersGateway implements Known {
  readonly db: string;
  readonly url: string;
  readonly #temporary: string;
  readonly #start: () => Gateway;
  readonly #workers: number;
  /** The supervisors so far: the last one is the one that lives. */
  readonly #lives: Array<Gateway> = [];
  /** All processes that a log has named; a log keeps its end alone. */
  readonly #pids = new Set<number>();
  #isLocked = false;
  /** The supervisors that took the place of another one: when they listened, in milliseconds since the epoch, and how long that took. */
  readonly succeeded: Array<{ readonly at: number; readonly ms: number }> = [];

  private constructor(plan: WorkersPlan, folder: string, upstream: string, port: number) {
    this.db = join(folder, "runs.db");
    this.url = `http://127.0.0.1:${port}`;
    this.#workers = plan.workers;
    this.#temporary = join(folder, "t");
    mkdirSync(this.#temporary);
    const args = [
      ...["--workers", String(plan.workers), "--db", this.db, "--lease-ms", String(leaseMs), "--access-log", "off"],
      ...["--drain-ms", String(plan.drainMs), "--on-question", "hold", "--continue-text", "auto"],
      ...(plan.lingers ? ["--linger-ms", String(lingerMs)] : []),
      ...["--openai-url", `${upstream}/v1`, "--anthropic-url", upstream, "--gemini-url", upstream],
    ];
    this.#start = () => new Gateway(port, args, () => undefined, { TMPDIR: this.#temporary });
  }

  /** Starts it, until all its workers serve. It is killed with the scope. */
  static readonly start = (
    plan: WorkersPlan,
    folder: string,
    upstream: string,
  ): Effect.Effect<WorkersGateway, never, Scope.Scope> =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(freePort);
      const made = new WorkersGateway(plan, folder, upstream, port);
      yield* Effect.addFinalizer(() => Effect.sync(() => made.#killAll()));
      const first = made.#start();
      made.#lives.push(first);
      yield* Effect.promise(() => first.start());
      yield* made.served();
      return made;
    });

  /** What the supervisor that lives has logged. */
  readonly stderr = (): string => this.#lives.at(-1)?.log ?? "";

  /** All workers of the supervisor that lives serve. */
  readonly served = () =>
    polled(
      Effect.sync(() => {
        const pids = [...this.pids().values()];
        return pids.length === this.#workers && pids.every((pid) => signalled(pid, 0)) ? true : undefined;
      }),
    );

  /** The workers' processes by their numbers. */
  pids(): ReadonlyMap<number, number> {
    for (const { log, pid } of this.#lives) {
      for (const it of [pid, ...workersOf({ stderr: () => log }).values()]) if (it !== undefined) this.#pids.add(it);
    }
    return workersOf(this);
  }

  /** Sends a worker a signal. */
  signal(worker: number, name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    signalled(this.pids().get(worker), name);
  }

  /**
   * Stops a worker outside of a commit: inside of one it would keep the lock, and nobody could write until it wakes. A thread of it may
   * run on for a moment, and take the lock then.
   */
  readonly stop = Effect.fnUntraced({ self: this }, function* (this: WorkersGateway, worker: number) {
    for (;;) {
      const isLocked = this.#isLocked;
      const release = isLocked ? undefined : this.lock();
      this.signal(worker, "SIGSTOP");
      release?.();
      yield* Effect.sleep(stoppedWithinMs);
      if (isLocked || this.#isFree()) return;
      this.signal(worker, "SIGCONT");
      yield* Effect.sleep(stoppedWithinMs);
    }
  });

  /** Whether the lock can be had: nobody but the stopped worker keeps it for so long. */
  #isFree(): boolean {
    try {
      this.lock(freeMsMax)();
      return true;
    } catch {
      return false;
    }
  }

  /** Waits until another process serves as a worker than now. */
  replaced(worker: number) {
    const before = this.pids().get(worker);
    return polled(Effect.sync(() => (this.pids().get(worker) === before ? undefined : true)));
  }

  /** Sends the supervisor that lives a signal; how it has ended, once it is gone. */
  end(name: "SIGKILL" | "SIGTERM"): Promise<string> {
    this.pids();
    return this.#lives.at(-1)?.signal(name) ?? Promise.resolve("no start");
  }

  /** Starts another one over the same file at the same port: again and again, as a service manager does. */
  async succeed(): Promise<void> {
    this.pids();
    const from = Date.now();
    for (;;) {
      const next = this.#start();
      try {
        await next.start();
        this.#lives.push(next);
        this.succeeded.push({ at: Date.now(), ms: Date.now() - from });
        return;
      } catch (error) {
        if (Date.now() - from > succeedMsMax) throw error;
      }
    }
  }

  /** Takes the lock that all writes need; gives what lets it go. */
  lock(withinMs: number = lockMsMax): () => void {
    const database = new DatabaseSync(this.db, { timeout: withinMs });
    try {
      database.exec("BEGIN IMMEDIATE");
    } catch (error) {
      database.close();
      throw error;
    }
    this.#isLocked = true;
    return () => {
      this.#isLocked = false;
      database.exec("COMMIT");
      database.close();
    };
  }

  /** Processes that live. */
  get living(): ReadonlyArray<number> {
    this.pids();
    return [...this.#pids].filter((pid) => signalled(pid, 0));
  }

  /** What is left in the temporary directory. */
  get files(): ReadonlyArray<string> {
    return existsSync(this.#temporary) ? readdirSync(this.#temporary) : [];
  }

  #killAll(): void {
    for (const pid of this.living) signalled(pid, "SIGKILL");
  }
}

/** Whether there is such a process. */
const signalled = (pid: number | undefined, name: NodeJS.Signals | 0): boolean => {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
};
