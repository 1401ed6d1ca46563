/**
 * Runs the gateways: each is a separate process on its own port, and restarts on the same port after it has ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { hostname } from "node:os";
import { program } from "../programs/Program.ts";
import type { Backend } from "./Balancer.ts";

/** The command line of one version of the gateway. */
export interface Program {
  readonly version: "older" | "newer";
  readonly bin: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The version in this working tree. */
export const newer: Program = {
  version: "newer",
  bin: await program("src/cli/bin.ts"),
  env: {},
};

/** Start timeout, in milliseconds. Several gateways start at once, on a machine that may be busy. */
const startMs = 180_000;

/** Timeout of an orderly stop, in milliseconds. `serve` drains for 30 s and then writes its last entries to the store. */
const stopMs = 60_000;

/** Maximum length of a process's log that is kept, in characters. */
const logMax = 200_000;

/** One gateway and its successive processes. */
export class Gateway implements Backend {
  readonly port: number;
  /** The version of each process, in order. */
  readonly versions: Array<Program["version"]> = [];
  readonly #args: ReadonlyArray<string>;
  #child: ChildProcess | undefined;
  #isReady = false;
  #log = "";
  #isToEnd = false;
  readonly #ended: (gateway: Gateway) => void;
  readonly #env: Readonly<Record<string, string>>;

  /**
   * @param args the arguments of `serve`, without the port
   * @param ended called when the process ends unasked
   * @param env additional environment variables
   */
  constructor(
    port: number,
    args: ReadonlyArray<string>,
    ended: (gateway: Gateway) => void,
    env: Readonly<Record<string, string>> = {},
  ) {
    this.port = port;
    this.#args = args;
    this.#ended = ended;
    this.#env = env;
  }

  readonly life = (): number => this.versions.length;

  /** True while the gateway accepts connections. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** The last `logMax` characters of its log. */
  get log(): string {
    return this.#log;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The name of this process in the store. */
  get label(): string {
    return `${this.#child?.pid}@${hostname()}`;
  }

  /** Starts a process and waits until it listens. */
  async start({ bin, env, version }: Program = newer): Promise<void> {
    this.versions.push(version);
    this.#isToEnd = false;
    const args = ["--no-warnings", bin, "serve", "--port", String(this.port), ...this.#args];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env, ...this.#env },
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`a gateway did not start:\n${this.#log}`)), startMs);
      child.stdout?.on("data", (bytes: Buffer) => {
        if (!String(bytes).includes("listening on")) return;
        clearTimeout(late);
        this.#isReady = true;
        resolve();
      });
      child.stderr?.on("data", (bytes: Buffer) => {
        this.#log = (this.#log + String(bytes)).slice(-logMax);
      });
      child.once("exit", () => {
        clearTimeout(late);
        this.#isReady = false;
        if (!this.#isToEnd) this.#ended(this);
        reject(new Error(`a gateway ended while it was starting:\n${this.#log}`));
      });
    });
  }

  /** Sends a signal and waits for the process to exit. Returns its exit code or the signal that ended it. */
  async signal(name: "SIGKILL" | "SIGTERM"): Promise<string> {
    this.#isReady = false;
    this.#isToEnd = true;
    const child = this.#child;
    if (child === undefined) return "no start";
    if (child.exitCode === null && child.signalCode === null) {
      await new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
        child.kill(name);
      });
    }
    return String(child.signalCode ?? child.exitCode);
  }

  /** Kills the process as a crash would, and waits until it is gone. */
  async kill(): Promise<void> {
    await this.signal("SIGKILL");
  }

  /** Stops the process as a service manager would, and waits until it is gone. Rejects if the exit code is not 0. */
  async stop(): Promise<void> {
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), stopMs);
    const how = await this.signal("SIGTERM");
    clearTimeout(late);
    if (how !== "0") throw new Error(`a gateway that received SIGTERM ended with ${how}:\n${this.#log.slice(-2_000)}`);
  }
}
