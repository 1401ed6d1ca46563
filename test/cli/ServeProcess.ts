/**
 * Runs `stream-recovery serve` as a process of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, References, type Scope } from "effect";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import { bareEnv, bin } from "./CommandLine.ts";

/** A folder that goes with its test. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "gateway-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

export interface Served {
  readonly child: ChildProcess;
  /** Exit code and signal, once it has ended. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** From its first line. */
  readonly url: string;
}

/**
 * Starts it, and waits for its first line or its end.
 *
 * @param args without `serve`
 * @param program the command line; left out, that of this version
 */
export const serve = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  program: string = bin,
): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, ["--no-warnings", program, "serve", ...args], {
        env: { ...bareEnv(tmpdir()), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said = { stdout: "", stderr: "" };
      // Node's own promise of an event's arguments, which it does not type.
      const exited = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
      const line = new Promise<void>((resolve) => {
        child.stdout.on("data", (chunk: Buffer) => {
          said.stdout += String(chunk);
          if (said.stdout.includes("\n")) resolve();
        });
      });
      child.stderr.on("data", (chunk: Buffer) => {
        said.stderr += String(chunk);
      });
      await Promise.race([line, exited]);
      const url = /^listening on (http:\/\/\S+)\n/.exec(said.stdout)?.[1] ?? "";
      return { child, exited, stdout: () => said.stdout, stderr: () => said.stderr, url };
    }),
    ({ child, exited }) =>
      Effect.promise(async () => {
        if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
        await exited;
      }),
  );

/** The runs in a file, read by a process that forgets nothing. */
export const runsIn = (file: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      return yield* recorder.runs({ limit: 1000 });
    }).pipe(
      Effect.provide(SqlRunRecorder.layerFile({ file, retention: false })),
      Effect.provideService(References.MinimumLogLevel, "None"),
    ),
  );
