/**
 * Runs a command with a time limit. A command that exceeds it is killed together with all its children.
 */
import { spawn } from "node:child_process";

/** The end of a command. */
export interface Ended {
  /** Undefined if it exceeded its time limit. */
  readonly code: number | undefined;
  /** The last part of its output. */
  readonly printed: string;
}

/** Maximum length of the output that is kept, in characters. */
const printedMax = 200_000;

/** Runs Node with these arguments. */
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
      // Kills the child's own process group, and with it everything that the child started.
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
