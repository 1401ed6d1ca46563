/**
 * Starts the command line as a process of its own, as a person types it.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The command line, from the sources. */
export const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

/** What came of a process. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a process is started. */
export interface How {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** What a process may know of this machine where it must not see the environment of the tests. */
export const bareEnv = (home: string): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: home,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});

/** Starts a command, with open pipes. */
export const start = (args: ReadonlyArray<string>, { cwd, env }: How = {}): ChildProcessWithoutNullStreams =>
  spawn(process.execPath, ["--no-warnings", bin, ...args], { cwd, env: env ?? process.env });

/** Collects what a process prints. */
export const heard = (child: ChildProcessWithoutNullStreams): { stdout: string; stderr: string } => {
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.stderr += text;
  });
  return said;
};

/** Runs a command to its end, with nothing more on its stdin than `input`. */
export const run = async (args: ReadonlyArray<string>, how?: How, input: string | Uint8Array = ""): Promise<Ended> => {
  const child = start(args, how);
  const said = heard(child);
  // A command that ends before it has read everything closes its end of the pipe; its exit code tells the rest.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code] = await once(child, "close");
  return { code, ...said };
};
