/**
 * Runs a command with a limit on its time; a command beyond its limit is ended with all that it started.
 */
import { spawn } from "node:child_process";

/** How a command ended. */
export interface Ended {
  /** Undefined: its time was over. */
  readonly code: number | undefined;
  /** The end of what it printed. */
  readonly printed: string;
}

/** Characters of what a command printed that are kept. */
const printedMax = 200_000;

/** Runs the program that runs this, with these arguments. */
export const node = (args: ReadonlyArray<string>, cwd: string, limitMs: number): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    const keep = (bytes: Buffer) => {
      printed = `${printed}${bytes.toString()}`.slice(-printedMax);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let late = false;
    const end = () => {
      // The group of the child's own: what it started goes with it.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    };
    const limit = setTimeout(() => {
      late = true;
      end();
    }, limitMs);
    process.once("exit", end);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(limit);
      process.off("exit", end);
      resolve({ code: late ? undefined : (code ?? 1), printed });
    });
  });
