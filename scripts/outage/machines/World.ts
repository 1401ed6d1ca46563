/**
 * Plays one scenario in its own network namespace: a gateway here, its provider on another machine, and a cable between them that
 * silently drops every packet while it is cut. It prints its observations as one line of JSON.
 *
 * `World.ts SCENARIO`: `body`, `head` and `before` cut the cable for 20 s during a response, during a request without a response, and
 * before the request. `stopped` stops the gateway's process for 5 s while the provider stays up; `stopped-reset` and `stopped-silent`
 * also end the open connections meanwhile, with and without a reset that reaches the gateway.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Seen } from "./Seen.ts";

const at = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

const providerPort = 8080;
const providerAddress = "10.77.0.2";

/** Duration of a cut, in milliseconds. */
const cutMs = 20_000;

/** Duration of a stop, in milliseconds. It exceeds the lateness at which the gateway notices a stop. */
const stoppedMs = 5_000;

const ip = (...args: ReadonlyArray<string>): void => void execFileSync("ip", args);
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A second machine that runs only its provider. */
class Machine {
  readonly lines: Array<{ readonly at: number; readonly request?: string; readonly closed?: string }> = [];
  readonly #child: ChildProcess;

  constructor() {
    this.#child = spawn(
      "unshare",
      ["--net", process.execPath, "--no-warnings", at("./Provider.ts"), String(providerPort)],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    if (this.#child.stdout === null) throw new Error("the provider has no output");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      // Written by Provider.ts, which prints lines of this type.
      this.lines.push(JSON.parse(line) as (typeof this.lines)[number]);
    });
  }

  async waitUntilReady(): Promise<void> {
    while (this.lines.length === 0) await sleep(20);
  }

  #runInNamespace(...command: ReadonlyArray<string>): void {
    execFileSync("nsenter", ["--target", String(this.#child.pid), "--net", ...command]);
  }

  connect(): void {
    ip("link", "add", "here", "type", "veth", "peer", "name", "there");
    ip("link", "set", "there", "netns", String(this.#child.pid));
    ip("addr", "add", "10.77.0.1/24", "dev", "here");
    ip("link", "set", "here", "up");
    this.#runInNamespace("ip", "addr", "add", `${providerAddress}/24`, "dev", "there");
    this.#runInNamespace("ip", "link", "set", "there", "up");
  }

  /** Drops every packet silently: a token bucket too small for any packet. */
  cutNetwork(): void {
    const lossy = ["root", "tbf", "rate", "8bit", "burst", "1", "limit", "1"];
    execFileSync("tc", ["qdisc", "add", "dev", "here", ...lossy]);
    this.#runInNamespace("tc", "qdisc", "add", "dev", "there", ...lossy);
  }

  restoreNetwork(): void {
    execFileSync("tc", ["qdisc", "del", "dev", "here", "root"]);
    this.#runInNamespace("tc", "qdisc", "del", "dev", "there", "root");
  }

  /** Resets every connection of the other machine. */
  reset(): void {
    this.#runInNamespace("ss", "--kill", "state", "established", "sport", "=", `:${providerPort}`);
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

const gatewayOf = async (args: ReadonlyArray<string>) => {
  const child = spawn(
    process.execPath,
    [
      ...["--no-warnings", at("../../../src/cli/bin.ts"), "serve", "--port", "0", "--db", "memory"],
      ...["--openai-url", `http://${providerAddress}:${providerPort}/v1`, "--reveal", "on_complete", ...args],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(line.replace(/^listening on /, "").trim()));
    child.once("close", () => reject(new Error(log)));
  });
  return { child, url, log: () => log };
};

const ask = async (url: string, text: string) => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-test" },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: text }] }),
  });
  const whole = await response.text().catch(() => "");
  return { status: response.status, whole: whole.includes("[DONE]"), text: whole };
};

/** The breaks that the gateway detected. Times are in milliseconds since the epoch. */
const incidents = async (url: string): Promise<ReadonlyArray<{ readonly at: number; readonly code: string }>> => {
  const json = async (path: string) => (await fetch(`${url}/recovery/api${path}`)).json() as Promise<never>;
  const { runs }: { readonly runs: ReadonlyArray<{ readonly run_id: string }> } = await json("/runs");
  const found = await Promise.all(
    runs.map(async ({ run_id }) => {
      const said: {
        readonly incidents: ReadonlyArray<{
          readonly at: number;
          readonly failure: { readonly kind: string; readonly code?: string };
        }>;
      } = await json(`/runs/${run_id}/incidents`);
      return said.incidents.map(({ at: when, failure }) => ({ at: when, code: failure.code ?? failure.kind }));
    }),
  );
  return found.flat();
};

const machine = new Machine();

const play = async (scenario: string): Promise<Seen> => {
  await machine.waitUntilReady();
  machine.connect();
  const gateway = await gatewayOf([]);
  await ask(gateway.url, "steady 0");
  const before = machine.lines.length;
  const text = scenario === "head" ? "mute 1" : "steady 4";
  let lastByteAt = Date.now();
  let backAt = Date.now();
  const cutFor = async (ms: number) => {
    machine.cutNetwork();
    lastByteAt = Date.now();
    await sleep(ms);
    machine.restoreNetwork();
    backAt = Date.now();
  };
  const stopFor = async (ms: number, meanwhile: () => void) => {
    gateway.child.kill("SIGSTOP");
    lastByteAt = Date.now();
    meanwhile();
    await sleep(ms);
    gateway.child.kill("SIGCONT");
    backAt = Date.now();
  };
  if (scenario === "before") void cutFor(cutMs);
  const answer = ask(gateway.url, text);
  await sleep(1_500);
  if (scenario === "body" || scenario === "head") await cutFor(cutMs);
  if (scenario === "stopped") await stopFor(stoppedMs, () => undefined);
  if (scenario === "stopped-reset") await stopFor(stoppedMs, () => machine.reset());
  if (scenario === "stopped-silent") {
    // Open connections are lost without a reset that arrives, and new connections work.
    gateway.child.kill("SIGSTOP");
    machine.cutNetwork();
    machine.reset();
    await sleep(stoppedMs);
    machine.restoreNetwork();
    lastByteAt = Date.now() - stoppedMs;
    gateway.child.kill("SIGCONT");
    backAt = Date.now();
  }
  const { status, whole } = await answer;
  const asked = machine.lines.slice(before).filter(({ request }) => request !== undefined);
  const found = await incidents(gateway.url);
  gateway.child.kill("SIGKILL");
  return {
    status,
    whole,
    requests: asked.length,
    feltMs: found.map(({ at: when, code }) => ({ code, ms: when - lastByteAt })),
    nextMs: asked.filter((line) => line.at >= backAt).map((line) => line.at - backAt),
  };
};

try {
  console.log(JSON.stringify(await play(process.argv[2] ?? "body")));
} finally {
  machine.end();
}
process.exit(0);
