/**
 * Holds the gateways: each is a process of its own on a port of its own, and is started again where it stood after it has ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import type { Backend } from "./Balancer.ts";

/** The command line of one version. */
export interface Program {
  readonly version: "older" | "newer";
  readonly bin: string;
  /** What its processes have in their environment besides. */
  readonly env: Readonly<Record<string, string>>;
}

/** The program of this version. */
export const newer: Program = {
  version: "newer",
  bin: fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url)),
  env: {},
};

/** Longest that a start may take, in milliseconds: several start at once, on a machine that may be busy. */
const startMs = 180_000;

/** Longest that a gateway may take to end in order, in milliseconds: `serve` drains for 30 s, and has its last words with its store. */
const stopMs = 60_000;

/** What is kept of a process's log, in characters. */
const logMax = 200_000;

/** One gateway. */
export class Gateway implements Backend {
  readonly port: number;
  /** The version of each of its lives: the first one stands first. */
  readonly versions: Array<Program["version"]> = [];
  readonly #args: ReadonlyArray<string>;
  #child: ChildProcess | undefined;
  #isReady = false;
  #log = "";
  #isToEnd = false;
  readonly #ended: (gateway: Gateway) => void;
  readonly #env: Readonly<Record<string, string>>;

  /**
   * @param args of `serve`, without its port
   * @param ended is called where it ended by itself
   * @param env variables beside those of this process
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

  /** Takes connections. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** The end of what it logged. */
  get log(): string {
    return this.#log;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** What the store calls this process. */
  get label(): string {
    return `${this.#child?.pid}@${hostname()}`;
  }

  /** Starts it as a program, and waits until it listens. */
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
        reject(new Error(`a gateway ended as it started:\n${this.#log}`));
      });
    });
  }

  /** Sends it a signal, and says how it has ended once it is gone: its exit code, or the name of a signal. */
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

  /** Ends it at once, as a crash does, and returns when it is gone. */
  async kill(): Promise<void> {
    await this.signal("SIGKILL");
  }

  /** Tells it to end, as a service manager does, and returns when it is gone. Fails where it does not end in order. */
  async stop(): Promise<void> {
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), stopMs);
    const how = await this.signal("SIGTERM");
    clearTimeout(late);
    if (how !== "0") throw new Error(`a gateway that was told to end ended by ${how}:\n${this.#log.slice(-2_000)}`);
  }
}

/** A port of this machine that nothing listens on. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
