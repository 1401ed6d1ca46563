/**
 * Runs other programs: to their end within a limit, or in the background for as long as they are needed.
 */
import { type ChildProcess, spawn } from "node:child_process";

/** Most that is kept of what a program prints, in UTF-16 code units. */
const printedMax = 4_000_000;

/** How long a program that was told to end may take, in milliseconds. */
const endMs = 5_000;

/** What to start, where, and with which environment: nothing else is inherited. */
export interface Command {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface Ended {
  /** Its exit code; undefined where the limit ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end; past the limit it is killed with everything that it started.
 *
 * @param limitMs milliseconds
 */
export const run = async (what: Command, limitMs: number): Promise<Ended> => {
  const child = start(what);
  const stdout = collect(child, "stdout");
  const stderr = collect(child, "stderr");
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill(child, "SIGKILL");
  }, limitMs);
  try {
    const code = await closed(child);
    return { code: late ? undefined : code, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(timer);
    kill(child, "SIGKILL"); // what it left behind
  }
};

/** A program in the background. */
export interface Background {
  /** Its first line on stdout. */
  readonly firstLine: string;
  /** Ends it, and waits until it has ended. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a program and waits for its first line.
 *
 * @param limitMs how long that may take, in milliseconds
 */
export const background = async (what: Command, limitMs: number): Promise<Background> => {
  const child = start(what);
  const stderr = collect(child, "stderr");
  const stdout = collect(child, "stdout");
  const ended = closed(child).catch(() => undefined);
  const stop = async () => {
    kill(child, "SIGTERM");
    const timer = setTimeout(() => kill(child, "SIGKILL"), endMs);
    await ended;
    clearTimeout(timer);
  };
  const firstLine = await new Promise<string | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), limitMs);
    const look = () => {
      const [line, rest] = stdout().split("\n", 2);
      if (rest === undefined) return;
      clearTimeout(timer);
      resolve(line);
    };
    child.stdout?.on("data", look);
    void ended.then(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
  if (firstLine !== undefined) return { firstLine, stop };
  await stop();
  throw new Error(`${what.args.join(" ")} did not start: ${stderr().trim().slice(-500)}`);
};

/** Each program leads a group of its own, so that its children end with it. */
const start = ({ args, command, cwd, env }: Command): ChildProcess =>
  spawn(command, [...args], { cwd, env: { ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });

const closed = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? (signal === null ? 0 : 1)));
  });

const collect = (child: ChildProcess, from: "stdout" | "stderr"): (() => string) => {
  let text = "";
  child[from]?.setEncoding("utf8").on("data", (more: string) => {
    text = (text + more).slice(0, printedMax);
  });
  return () => text;
};

const kill = (child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The whole group has ended already.
  }
};
