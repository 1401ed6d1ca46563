/**
 * Starts the command line as a separate process, as a person would.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { program } from "../../scripts/programs/Program.ts";

/** The command line, run from its sources. */
export const bin = await program("src/cli/bin.ts");

/** The outcome of a process. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a process. */
export interface How {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** An environment without the variables of the tests. */
export const bareEnv = (home: string): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: home,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});

export const start = (args: ReadonlyArray<string>, { cwd, env }: How = {}): ChildProcessWithoutNullStreams =>
  spawn(process.execPath, ["--no-warnings", bin, ...args], { cwd, env: env ?? process.env });

/** Collects the output of a process. */
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

/** Runs a command to its end with `input` as its stdin. */
export const run = async (args: ReadonlyArray<string>, how?: How, input: string | Uint8Array = ""): Promise<Ended> => {
  const child = start(args, how);
  const said = heard(child);
  // A command that ends before it has read everything closes its end of the pipe; its exit code is what matters.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code] = await once(child, "close");
  return { code, ...said };
};
