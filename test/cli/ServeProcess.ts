/**
 * Runs `stream-recovery serve` as a separate process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, References, type Scope } from "effect";
import { defaultNames } from "../../src/gateway/config/GatewayOptions.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import { bareEnv, bin } from "./CommandLine.ts";

/** A temporary folder that is removed after its test. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "gateway-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

/** The arguments that lead every protocol to one upstream. */
export const urls = (upstream: string, names: ReadonlyArray<string> = defaultNames): ReadonlyArray<string> =>
  names.flatMap((name) => [`--${name}-url`, name === "openai" ? `${upstream}/v1` : upstream]);

export interface Served {
  readonly child: ChildProcess;
  /** Resolves with the exit code and the signal once it has ended. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Read from its first line. */
  readonly url: string;
}

/** A process that may not listen yet. */
export interface Starting extends Omit<Served, "url"> {
  /** Resolves with its URL once it has printed its first line; empty if it ends first. */
  readonly listens: Promise<string>;
}

/**
 * Starts the process and waits for its first line or its end.
 *
 * @param args arguments after `serve`
 * @param program the command line, by default that of this version
 */
export const serve = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  program: string = bin,
): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.flatMap(starting(args, env, program), (it) =>
    Effect.map(
      Effect.promise(() => it.listens),
      (url) => ({ ...it, url }),
    ),
  );

/** Starts the process without waiting. */
export const starting = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  program: string = bin,
): Effect.Effect<Starting, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync((): Starting => {
      const child = spawn(process.execPath, ["--no-warnings", program, "serve", ...args], {
        env: { ...bareEnv(tmpdir()), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said = { stdout: "", stderr: "" };
      // Node does not type the arguments of an event.
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
      const listens = Promise.race([line, exited]).then(
        () => /^listening on (http:\/\/\S+)\n/.exec(said.stdout)?.[1] ?? "",
      );
      return { child, exited, stdout: () => said.stdout, stderr: () => said.stderr, listens };
    }),
    ({ child, exited }) =>
      Effect.promise(async () => {
        if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
        await exited;
      }),
  );

/** The runs in a file, read by a process without retention. */
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
