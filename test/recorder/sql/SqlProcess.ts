/**
 * Starts, stops and kills processes that share a file or a database of the SQL recorder.
 */
import { type ChildProcess, fork } from "node:child_process";
import { Effect, type Scope } from "effect";
import { program } from "../../../scripts/programs/Program.ts";
import { polled } from "../../Polling.ts";
import type { Recorder } from "../suite/Bench.ts";

/** A message from a child: the result of a call, or a commit of its storm. */
export type ChildMessage =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failed: string }
  | { readonly committed: number; readonly run: string };

/** The value of a call, or the reason of its failure. */
export interface Outcome {
  readonly value?: unknown;
  readonly failed?: string;
}

/** The program of a process: this version, or the previous version of the tables. */
export type Version = "now" | "previous";

const child = await program("test/recorder/sql/SqlChild.ts");

export class SqlProcess {
  /** The number of entries of each run that the storm has committed, as far as it was reported. */
  readonly committed = new Map<string, number>();
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();
  /** The outcome of opening its store. */
  opened: Outcome = {};
  #storm: Promise<Outcome> = Promise.resolve({ failed: "it has not begun" });
  #calls = 0;
  #onCommit: () => void = () => {};

  constructor(file: string, leaseMs: number, aheadMs: number, version: Version) {
    this.#child = fork(child, [file, String(leaseMs), String(aheadMs), version], { execArgv: ["--no-warnings"] });
    this.#child.on("message", (told: ChildMessage) => {
      if ("committed" in told) {
        this.committed.set(told.run, told.committed);
        this.#onCommit();
      } else {
        this.#waiting.get(told.id)?.(told);
        this.#waiting.delete(told.id);
      }
    });
    this.#child.on("exit", () => {
      for (const [, settle] of this.#waiting) settle({ failed: "exited" });
    });
  }

  /** Starts a process that ends with the scope. Its wall clock may be ahead, and it may run the previous version. */
  static start(
    file: string,
    leaseMs = 15_000,
    aheadMs = 0,
    version: Version = "now",
  ): Effect.Effect<SqlProcess, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.promise(async () => {
        const started = new SqlProcess(file, leaseMs, aheadMs, version);
        started.opened = await started.#outcome(0);
        return started;
      }),
      (it) => Effect.promise(() => it.#ended("SIGKILL")),
    );
  }

  call<M extends keyof Recorder>(
    method: M,
    ...args: Recorder[M] extends (...args: infer A) => unknown ? A : never
  ): Effect.Effect<Outcome> {
    return Effect.promise(() => this.#ask(method, args));
  }

  /** Starts endless writes and returns after `commits` commits; a storm that ends by itself dies with its reason. */
  storm(name: string, commits: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#storm = this.#ask("storm", [name]);
      return this.more(commits);
    });
  }

  /** Returns after `commits` further commits of the storm. */
  more(commits: number): Effect.Effect<void> {
    return Effect.promise(
      () =>
        new Promise<void>((resolve, reject) => {
          let left = commits;
          this.#onCommit = () => {
            left -= 1;
            if (left === 0) resolve();
          };
          void this.#storm.then(({ failed }) => reject(new Error(`the storm has ended: ${failed}`)));
        }),
    );
  }

  /** The reason why its storm has ended, once it has. */
  readonly stormEnd: Effect.Effect<string | undefined> = Effect.promise(async () => (await this.#storm).failed);

  /** Freezes the process, like a suspended laptop or a debugger. */
  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  /** Continues a frozen process. */
  go(): void {
    this.#child.kill("SIGCONT");
  }

  /** Kills the process. */
  readonly kill: Effect.Effect<void> = Effect.promise(() => this.#ended("SIGKILL"));

  #ask(method: string, args: ReadonlyArray<unknown>): Promise<Outcome> {
    this.#calls += 1;
    const outcome = this.#outcome(this.#calls);
    this.#child.send({ id: this.#calls, method, args });
    return outcome;
  }

  #outcome(id: number): Promise<Outcome> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  #ended(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#child.on("exit", () => resolve());
      this.#child.kill(signal);
    });
  }
}

/** Claims the run repeatedly until the lease of its owner is over. */
export const claimWhenOver = (by: SqlProcess, runId: string): Effect.Effect<Outcome> =>
  polled(Effect.map(by.call("claim", runId), (outcome) => (outcome.failed === "owned" ? undefined : outcome)));
