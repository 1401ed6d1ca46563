/**
 * Starts a process of a play, from its file and one argument, until the scope closes.
 */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, type Scope } from "effect";

/** A process that was started. */
export interface Child {
  /** The line that it said when it was ready. */
  readonly said: string;
  /** Sends it a signal; whether it was there to get it. */
  readonly signal: (name: "SIGKILL" | "SIGSTOP" | "SIGCONT") => boolean;
}

/** What is kept of what a process said of its failure, in characters. */
const toldMax = 4_000;

/**
 * Starts a process, and waits for its first line.
 *
 * @param file of the program
 * @param work what it is told
 */
export const started = (file: string, work: unknown): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ready = Deferred.makeUnsafe<string>();
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--no-warnings", file, JSON.stringify(work)], {
          stdio: ["ignore", "pipe", "pipe"],
          env: { NODE_COMPILE_CACHE: join(tmpdir(), "nodes-compiled"), ...process.env },
        }),
      ),
      (it) => Effect.sync(() => it.kill("SIGKILL")),
    );
    let told = "";
    child.stderr.on("data", (bytes: Buffer) => {
      told = `${told}${bytes.toString()}`.slice(-toldMax);
    });
    child.stdout.once("data", (bytes: Buffer) => Deferred.doneUnsafe(ready, Effect.succeed(bytes.toString().trim())));
    child.stdout.resume();
    child.once("exit", () => Deferred.doneUnsafe(ready, Effect.die(new Error(`${file} ended as it started: ${told}`))));
    const said = yield* Deferred.await(ready);
    return { said, signal: (name) => child.kill(name) };
  });
