/**
 * Starts `stream-recovery agent` as a person does, and waits for what it prints.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Deferred, Effect } from "effect";
import { bin } from "./CommandLine.ts";

/** Makes a pseudo-terminal; part of util-linux. */
export const terminal = "script";

/** A key that must be found nowhere. */
export const plantedKey = "sk-planted-0123456789";

/** A command that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** Everything that it has printed. */
  readonly printed: () => string;
  /** Waits until it has printed this. */
  readonly until: (text: string) => Effect.Effect<void>;
  /** Waits for its end. */
  readonly ended: Effect.Effect<number | null>;
}

/**
 * Starts the command; it is killed with the scope.
 *
 * @param pty in a pseudo-terminal, which `script` makes
 * @param more of its environment
 */
export const start = (args: ReadonlyArray<string>, pty = false, more: NodeJS.ProcessEnv = {}) =>
  Effect.acquireRelease(
    Effect.sync((): Running => {
      const words = [process.execPath, bin, "agent", ...args];
      const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
      const env = {
        ...process.env,
        OPENAI_API_KEY: plantedKey,
        ANTHROPIC_API_KEY: plantedKey,
        TERM: "xterm",
        NO_COLOR: "1",
        COLUMNS: "80",
        ...more,
      };
      const child = pty
        ? spawn(terminal, ["-qefc", `stty cols 60 rows 30; exec ${quoted}`, "/dev/null"], { env })
        : spawn(process.execPath, words.slice(1), { env });
      let printed = "";
      const waits = new Set<() => void>();
      const take = (bytes: Buffer) => {
        printed += bytes.toString();
        for (const look of waits) look();
      };
      child.stdout.on("data", take);
      child.stderr.on("data", take);
      const ended = Deferred.makeUnsafe<number | null>();
      child.once("close", (code) => {
        Deferred.doneUnsafe(ended, Effect.succeed(code));
        for (const look of waits) look();
      });
      const until = (text: string) =>
        Effect.callback<void>((resume) => {
          const look = () => {
            const isOver = Deferred.isDoneUnsafe(ended);
            if (!printed.includes(text) && !isOver) return;
            waits.delete(look);
            resume(printed.includes(text) ? Effect.void : Effect.die(new Error(`never printed ${text}: ${printed}`)));
          };
          waits.add(look);
          look();
        });
      return { child, printed: () => printed, until, ended: Deferred.await(ended) };
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL")),
  );
