/**
 * The HTTP stacks that read the endings. Each client in the folder `clients` posts a body, pauses after the first bytes of the response,
 * and reports the number of bytes it received and the error it saw.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { hasCommand, type Need } from "./Packages.ts";

/** The end of a response, as a client saw it. */
export interface Seen {
  readonly bytes: number;
  /** Undefined if the client considers the response complete. */
  readonly error: string | undefined;
}

/** A program or library that reads HTTP responses. */
export interface Stack {
  readonly name: string;
  readonly needs: Need;
  /** Prepares the stack once, in a folder of this run. */
  readonly prepare?: (folder: string) => Promise<unknown>;
  readonly read: (url: string, body: string, folder: string) => Promise<Seen>;
}

/** Pause of a slow reader after the first bytes, in milliseconds. It exceeds the time that the gateway takes to end. */
const pauseMs = 1_200;

/** Time limit of a client, in milliseconds. Java starts slowly on a busy machine. */
const readMsMax = 60_000;

const clients = fileURLToPath(new URL("./clients", import.meta.url));

interface Ran {
  readonly code: number | undefined;
  readonly bytes: number;
  readonly out: string;
  readonly error: string;
}

/** Runs a program to its end. `slow` leaves its output unread for a while, so that the program blocks. */
const run = (command: string, args: ReadonlyArray<string>, slow = false): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: readMsMax });
    let [bytes, out, error] = [0, "", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      if (bytes === 0 && slow) {
        child.stdout.pause();
        void sleep(pauseMs).then(() => child.stdout.resume());
      }
      bytes += chunk.byteLength;
      out = (out + chunk.toString("latin1")).slice(-1024);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      error = (error + chunk.toString()).slice(-1024);
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? undefined, bytes, out, error }));
  });

/** Runs a client of the folder `clients`, which reports in its last line. */
const runClient = async (command: string, args: ReadonlyArray<string>): Promise<Seen> => {
  const { error, out } = await run(command, args);
  const line = out.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`${command} printed no result: ${error}`);
  const said: unknown = JSON.parse(line);
  const { bytes, error: seen } = said as { bytes: number; error: string | null }; // Safe: every client prints this type.
  return { bytes, error: seen ?? undefined };
};

const python = (library: string): Stack => ({
  name: `Python ${library}`,
  needs: { commands: ["python3"], packages: ["python3"] },
  read: (url, body) => runClient("python3", [join(clients, "stack.py"), library, url, body, String(pauseMs)]),
});

const node = (library: string): Stack => ({
  name: `Node ${library}`,
  needs: { commands: [], packages: [] },
  read: (url, body) => runClient(process.execPath, [join(clients, "stack.mjs"), library, url, body, String(pauseMs)]),
});

const java = (library: string): Stack => ({
  name: `Java ${library}`,
  needs: { commands: ["java", "javac"], packages: ["default-jdk-headless"] },
  prepare: (folder) => run("javac", ["-d", folder, join(clients, "Stack.java")]),
  read: (url, body, folder) => runClient("java", ["-cp", folder, "Stack", library, url, body, String(pauseMs)]),
});

/** A program that writes the body to its output and reports a break with its exit code. */
const program = (name: string, args: (url: string, body: string) => ReadonlyArray<string>): Stack => ({
  name,
  needs: { commands: [name], packages: [name] },
  read: async (url, body) => {
    const { bytes, code } = await run(name, args(url, body), true);
    return { bytes, error: code === 0 ? undefined : `exit ${code ?? "by signal"}` };
  },
});

const type = "content-type: application/json";

const go: Stack = {
  name: "Go net/http",
  needs: { commands: ["go"], packages: ["golang-go"] },
  prepare: (folder) => run("go", ["build", "-o", join(folder, "stack-go"), join(clients, "stack.go")]),
  read: (url, body, folder) => runClient(join(folder, "stack-go"), [url, body, String(pauseMs)]),
};

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

let started: Promise<Browser> | undefined;

/** Closes the browser, if one was started. */
export const closeBrowser = async (): Promise<void> => (await started)?.close();

const browser: Stack = {
  name: "Chromium fetch",
  needs: { commands: [executablePath], packages: ["chromium"] },
  read: async (url, body) => {
    started ??= chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
    const page = await (await started).newPage();
    try {
      // Any page of the same origin will do, because the gateway refuses other origins.
      await page.goto(new URL("/recovery/nothing", url).href);
      const { bytes, error } = await page.evaluate(readInPage, { url, body, pauseMs });
      return { bytes, error: error ?? undefined };
    } finally {
      await page.close();
    }
  },
};

/** Runs in the browser's page. */
const readInPage = async (asked: { url: string; body: string; pauseMs: number }) => {
  let bytes = 0;
  let error: string | null = null;
  try {
    const headers = { "content-type": "application/json" };
    const response = await fetch(asked.url, { method: "POST", headers, body: asked.body });
    const reader = response.body?.getReader();
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      if (bytes === 0) await new Promise((resolve) => setTimeout(resolve, asked.pauseMs));
      bytes += next.value.byteLength;
    }
  } catch (problem) {
    error = problem instanceof Error ? problem.name : "error";
  }
  return { bytes, error };
};

/** All stacks. */
export const stacks: ReadonlyArray<Stack> = [
  python("http.client-line"),
  python("http.client-read"),
  python("urllib"),
  { ...python("requests"), needs: { commands: ["python3"], packages: ["python3-requests"], python: "requests" } },
  program("curl", (url, body) => ["-sSN", "-H", type, "-d", body, url]),
  program("wget", (url, body) => ["-nv", "-O", "-", "--tries=1", `--header=${type}`, `--post-data=${body}`, url]),
  java("HttpClient"),
  java("HttpURLConnection"),
  go,
  node("http"),
  node("fetch"),
  browser,
];

/** The stacks whose requirements are installed. */
export const installedStacks = (): ReadonlyArray<Stack> => stacks.filter(({ needs }) => hasCommand(needs));
