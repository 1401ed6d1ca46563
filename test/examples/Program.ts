/**
 * Runs example programs as processes, with the package's entry points from the sources: what a user would write runs without a
 * build.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { assert } from "@effect/vitest";
import { Deferred, Effect, Exit } from "effect";
import { program } from "../../scripts/programs/Program.ts";

/** The root of the repository. */
export const root = join(import.meta.dirname, "../..");

/** A program that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** Everything that it has printed. */
  readonly printed: () => string;
  /** Waits until it has printed this. It is a defect if the program ends without it. */
  readonly until: (text: string) => Effect.Effect<void>;
  /** Waits for its end, and gives its exit code. */
  readonly ended: Effect.Effect<number | null>;
  /** Waits for its end, and demands exit code 0. */
  readonly succeeded: Effect.Effect<string>;
}

/** Starts a program of the repository; it is killed with the scope. */
export const start = (file: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}) =>
  Effect.acquireRelease(
    Effect.map(
      Effect.promise(() => program(file)),
      (made) => run(made, args, env),
    ),
    // A test that runs into its time limit is interrupted: what its programs printed says why.
    ({ child, printed }, exit) =>
      Effect.sync(() => {
        child.kill("SIGKILL");
        if (Exit.isFailure(exit)) console.error(`${file} ${args[0]} (pid ${child.pid}) printed:\n${printed()}`);
      }),
  );

const run = (made: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv): Running => {
  const child = spawn(process.execPath, ["--no-warnings", made, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  });
  let printed = "";
  const waits = new Set<() => void>();
  const ended = Deferred.makeUnsafe<number | null>();
  const look = () => {
    for (const wait of waits) wait();
  };
  const take = (text: string) => {
    printed += text;
    look();
  };
  child.stdout.setEncoding("utf8").on("data", take);
  child.stderr.setEncoding("utf8").on("data", take);
  child.once("close", (code) => {
    Deferred.doneUnsafe(ended, Effect.succeed(code));
    look();
  });
  return {
    child,
    printed: () => printed,
    until: (text) =>
      Effect.callback<void>((resume) => {
        const wait = () => {
          const isThere = printed.includes(text);
          if (!isThere && !Deferred.isDoneUnsafe(ended)) return;
          waits.delete(wait);
          resume(isThere ? Effect.void : Effect.die(new Error(`it never printed ${text}: ${printed}`)));
        };
        waits.add(wait);
        wait();
      }),
    ended: Deferred.await(ended),
    succeeded: Effect.map(Deferred.await(ended), (code) => {
      assert.strictEqual(code, 0, printed);
      return printed;
    }),
  };
};
