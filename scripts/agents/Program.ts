/**
 * Runs other programs: to their end within a time limit, or in the background.
 */
import { type ChildProcess, spawn } from "node:child_process";

/** Maximum output that is kept of a program, in UTF-16 code units. */
const printedMax = 4_000_000;

/** Time that a program has to end after SIGTERM, in milliseconds. */
const endMs = 5_000;

/** A command with its folder and environment. Nothing else is inherited. */
export interface Command {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The end of a program. */
export interface Ended {
  /** Its exit code; undefined if it exceeded the time limit. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end. At the time limit it is killed together with all its children.
 *
 * @param limitMs the time limit, in milliseconds
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
    const code = await waitForClose(child);
    return { code: late ? undefined : code, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(timer);
    kill(child, "SIGKILL"); // Kills the children it left.
  }
};

/** A program in the background. */
export interface Background {
  readonly firstLine: string;
  /** Stops the program and waits for its end. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a program and waits for its first line.
 *
 * @param limitMs timeout for that line, in milliseconds
 */
export const startBackground = async (what: Command, limitMs: number): Promise<Background> => {
  const child = start(what);
  const stderr = collect(child, "stderr");
  const stdout = collect(child, "stdout");
  const ended = waitForClose(child).catch(() => undefined);
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

/** Starts a program as the leader of a new process group, so that its children end with it. */
const start = ({ args, command, cwd, env }: Command): ChildProcess =>
  spawn(command, [...args], { cwd, env: { ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });

const waitForClose = (child: ChildProcess): Promise<number> =>
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
    // The whole group has already ended.
  }
};
