/**
 * Starts processes that share a file or a database of the SQL recorder, stops and kills them.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Effect, type Scope } from "effect";
import type { Recorder } from "../suite/Bench.ts";

/** What a child tells: the result of a call, or a commit of its storm. */
export type ChildMessage =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failed: string }
  | { readonly committed: number; readonly run: string };

/** What a call gives: its value, or the reason of its failure. */
export interface Outcome {
  readonly value?: unknown;
  readonly failed?: string;
}

/** Whose program a process runs: this one's, or that of the tables' version before. */
export type Version = "now" | "previous";

const program = fileURLToPath(new URL("./SqlChild.ts", import.meta.url));

/** Another process with a recorder over the same file. */
export class SqlProcess {
  /** How many entries of each run the storm has committed, as far as it was told. */
  readonly committed = new Map<string, number>();
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();
  /** What came of opening its store. */
  opened: Outcome = {};
  #storm: Promise<Outcome> = Promise.resolve({ failed: "it has not begun" });
  #calls = 0;
  #onCommit: () => void = () => {};

  constructor(file: string, leaseMs: number, aheadMs: number, version: Version) {
    this.#child = fork(program, [file, String(leaseMs), String(aheadMs), version], { execArgv: ["--no-warnings"] });
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

  /** Starts one that ends with the scope; its wall clock may be ahead, and its program the version before this one. */
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

  /** Calls a method of its recorder. */
  call<M extends keyof Recorder>(
    method: M,
    ...args: Recorder[M] extends (...args: infer A) => unknown ? A : never
  ): Effect.Effect<Outcome> {
    return Effect.promise(() => this.#ask(method, args));
  }

  /** Lets it write without end, and returns when it has committed so often; a storm that ends by itself dies with its reason. */
  storm(name: string, commits: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#storm = this.#ask("storm", [name]);
      return this.more(commits);
    });
  }

  /** Returns when the storm has committed so often from now on. */
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

  /** Why its storm has ended, once it has. */
  readonly stormEnd: Effect.Effect<string | undefined> = Effect.promise(async () => (await this.#storm).failed);

  /** Freezes it, as a suspended laptop or a debugger does. */
  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  /** Lets it go on. */
  go(): void {
    this.#child.kill("SIGCONT");
  }

  /** Kills it without a word. */
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
