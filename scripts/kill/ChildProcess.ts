/**
 * Starts a child process of a play from its file and one JSON argument. It is killed when the scope closes.
 */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, type Scope } from "effect";
import { program } from "../programs/Program.ts";

/** A running child process. */
export interface Child {
  /** The first chunk of its output, which says that it is ready. */
  readonly said: string;
  /** Sends a signal. Returns false if the process was already gone. */
  readonly signal: (name: "SIGKILL" | "SIGSTOP" | "SIGCONT") => boolean;
}

/** Maximum length of the error output that is kept, in characters. */
const toldMax = 4_000;

/**
 * Starts a process and waits for its first output.
 *
 * @param file path of the program, relative to the root of the repository
 * @param work the argument, passed as JSON
 */
export const startChild = (file: string, work: unknown): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ready = Deferred.makeUnsafe<string>();
    const made = yield* Effect.promise(() => program(file));
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--no-warnings", made, JSON.stringify(work)], {
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
    child.once("exit", () => Deferred.doneUnsafe(ready, Effect.die(new Error(`${file} exited at startup: ${told}`))));
    const said = yield* Deferred.await(ready);
    return { said, signal: (name) => child.kill(name) };
  });
