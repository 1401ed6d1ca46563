/**
 * Measures the cost that each adapter adds to a client: the same stream is read with and without it, in turns, in one process.
 *
 * The events come over loopback from a provider in a separate process, so only the client's CPU time is counted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { median } from "./Median.ts";

/** The adapters that are measured. */
export type AdapterName = "fetch" | "ai_sdk" | "ai_sdk_live" | "effect_ai";

/** The size of a measurement in one process. */
export interface AdaptersSize {
  readonly adapter: AdapterName;
  /** Number of text parts of one round. */
  readonly deltas: number;
  /** Number of measured rounds. Others before them warm up. */
  readonly rounds: number;
}

/** CPU time per part, in microseconds. `more` is the median of the rounds' differences. */
export interface Adapters {
  readonly bare: number;
  readonly recovered: number;
  readonly more: number;
}

/** Reads one stream to its end and returns the number of its text parts. */
export type Read = () => Promise<number>;

/** A client without and with its adapter. */
export interface Pair {
  readonly bare: Read;
  readonly recovered: Read;
}

/** Number of rounds that warm up. The compilers run concurrently at first, and their time would be counted as the clients'. */
const warmUpRounds = 6;

/** Reads with both sides in turns. The order changes every round. */
export const measure = async ({ adapter, deltas, rounds }: AdaptersSize): Promise<Adapters> => {
  const provider = await start({ answers: [{ content: [{ text: deltas }] }] });
  try {
    const { bare, recovered } = await pairs[adapter](provider.url);
    const plain: Array<number> = [];
    const ours: Array<number> = [];
    const both = [
      async () => plain.push(await cpuPerPart(bare, deltas)),
      async () => ours.push(await cpuPerPart(recovered, deltas)),
    ];
    for (let round = 0; round < warmUpRounds + rounds; round += 1) {
      for (const side of round % 2 === 0 ? both : both.toReversed()) await side();
    }
    const counted = plain.slice(warmUpRounds);
    const with_us = ours.slice(warmUpRounds);
    return {
      bare: median(counted),
      recovered: median(with_us),
      more: median(with_us.map((it, round) => it - (counted[round] ?? Number.NaN))),
    };
  } finally {
    provider.stop();
  }
};

/** Loads only the measured adapter, so that no other code is on the heap. */
const pairs: Readonly<Record<AdapterName, (url: string) => Promise<Pair>>> = {
  fetch: async (url) => (await import("./AdapterClients.ts")).openAi(url),
  ai_sdk: async (url) => (await import("./AdapterAiSdk.ts")).aiSdk(url, false),
  ai_sdk_live: async (url) => (await import("./AdapterAiSdk.ts")).aiSdk(url, true),
  effect_ai: async (url) => (await import("./AdapterEffectAi.ts")).effectAi(url),
};

const cpuPerPart = async (read: Read, deltas: number): Promise<number> => {
  const before = process.cpuUsage();
  const seen = await read();
  const { system, user } = process.cpuUsage(before);
  if (seen !== deltas) throw new Error(`expected ${deltas} parts, got ${seen}`);
  return (user + system) / seen;
};

const entry = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

/** Starts `stream-recovery faults` with a script. */
const start = async (script: FaultScriptInput): Promise<{ readonly url: string; readonly stop: () => void }> => {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const file = join(folder, "script.json");
  writeFileSync(file, JSON.stringify(script));
  const args = ["--no-warnings", entry, "faults", "--script", file];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { url: (await firstLine(child)).replace(/^listening on /, ""), stop };
  } catch (error) {
    stop();
    throw error;
  }
};

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the provider ended with code ${code}`)));
    if (child.stdout !== null) createInterface({ input: child.stdout }).once("line", resolve);
  });
