/**
 * The gateway of a plan: its supervisor, the supervisors that replace it, and every process they started.
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Effect, type Scope } from "effect";
import { type Known, workersOf } from "../../../test/cli/Workers.ts";
import { polled } from "../../../test/Polling.ts";
import { Gateway } from "../../cluster/Gateways.ts";
import { freePort } from "../../programs/FreePort.ts";
import { leaseMs, lingerMs } from "../streams/StreamStates.ts";
import type { WorkersPlan } from "./WorkersPlan.ts";

/** Maximum time for which a failed start is retried, in milliseconds. */
const succeedMsMax = 60_000;

/** Timeout for a lock that another process holds, in milliseconds. */
const lockMsMax = 5_000;

/** Maximum time until all threads of a stopped process have halted, and until a running process has committed, in milliseconds. */
const [stoppedWithinMs, freeMsMax] = [100, 2_000];

/** The gateway of a plan. */
export class WorkersGateway implements Known {
  readonly db: string;
  readonly url: string;
  readonly #temporary: string;
  readonly #start: () => Gateway;
  readonly #workers: number;
  /** All supervisors so far. The last one is the current one. */
  readonly #lives: Array<Gateway> = [];
  /** Every process that a log has named. The logs themselves keep only their end. */
  readonly #pids = new Set<number>();
  #isLocked = false;
  /** The replacement supervisors: the time at which each listened, in milliseconds since the epoch, and the duration of its start. */
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

  /** Starts the gateway and waits until all its workers serve. It is killed when the scope closes. */
  static readonly start = (
    plan: WorkersPlan,
    folder: string,
    upstream: string,
  ): Effect.Effect<WorkersGateway, never, Scope.Scope> =>
    Effect.gen(function* () {
      const port = yield* freePort;
      const made = new WorkersGateway(plan, folder, upstream, port);
      yield* Effect.addFinalizer(() => Effect.sync(() => made.#killAll()));
      const first = made.#start();
      made.#lives.push(first);
      yield* Effect.promise(() => first.start());
      yield* made.served();
      return made;
    });

  readonly stderr = (): string => this.#lives.at(-1)?.log ?? "";

  /** Waits until all workers of the current supervisor serve. */
  readonly served = () =>
    polled(
      Effect.sync(() => {
        const pids = [...this.pids().values()];
        return pids.length === this.#workers && pids.every((pid) => sendSignal(pid, 0)) ? true : undefined;
      }),
    );

  /** The process ids of the current workers, by worker number. */
  pids(): ReadonlyMap<number, number> {
    for (const { log, pid } of this.#lives) {
      for (const it of [pid, ...workersOf({ stderr: () => log }).values()]) if (it !== undefined) this.#pids.add(it);
    }
    return workersOf(this);
  }

  signal(worker: number, name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    sendSignal(this.pids().get(worker), name);
  }

  /**
   * Stops a worker outside a commit. A worker stopped during a commit would keep the write lock and block all other writers. Its threads
   * run on for a moment after the signal and may take the lock then, so the stop is verified and repeated.
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

  /** True if the lock is available. Only the stopped worker could hold it for `freeMsMax`. */
  #isFree(): boolean {
    try {
      this.lock(freeMsMax)();
      return true;
    } catch {
      return false;
    }
  }

  /** Waits until a new process serves as this worker. */
  replaced(worker: number) {
    const before = this.pids().get(worker);
    return polled(Effect.sync(() => (this.pids().get(worker) === before ? undefined : true)));
  }

  /** Signals the current supervisor. Resolves to the way it ended, once it is gone. */
  end(name: "SIGKILL" | "SIGTERM"): Promise<string> {
    this.pids();
    return this.#lives.at(-1)?.signal(name) ?? Promise.resolve("no start");
  }

  /** Starts a new supervisor over the same file at the same port, and retries like a service manager. */
  async startSuccessor(): Promise<void> {
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

  /** Takes the lock that every write needs. Returns a function that releases it. */
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

  get living(): ReadonlyArray<number> {
    this.pids();
    return [...this.#pids].filter((pid) => sendSignal(pid, 0));
  }

  get files(): ReadonlyArray<string> {
    return existsSync(this.#temporary) ? readdirSync(this.#temporary) : [];
  }

  #killAll(): void {
    for (const pid of this.living) sendSignal(pid, "SIGKILL");
  }
}

/** Signals a process. Returns false if it does not exist. */
const sendSignal = (pid: number | undefined, name: NodeJS.Signals | 0): boolean => {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
};
