/**
 * Measures what a run keeps while it lingers behind its end: the memory of one gateway that has many of them, against the same gateway
 * before they came and when their time is over. What a run leaves for longer than that is in neither.
 */
import { setTimeout as pause } from "node:timers/promises";
import { median, type Spread, spread } from "../Median.ts";
import { type Row, spreadText } from "../Row.ts";
import { type Burst, lengthOf, playBurst, warmUp } from "./Client.ts";
import { type Contender, gateway } from "./Contenders.ts";
import { lingerTitle, type Part } from "./GatewayFigures.ts";
import type { Options } from "./Options.ts";
import { rowOf } from "./PeerRows.ts";
import { flagsOf, liveFile } from "./Settings.ts";

/** How long runs linger here: so many can be played meanwhile, and their end is waited for each time. */
const lingerMs = 12_000;

/** Longer than runs linger: then none does any more. */
const overMs = lingerMs + 3_000;

/** Within what a gateway keeps (1,024 runs, 256 MiB), so that none makes room for another. */
const bursts: ReadonlyArray<Burst> = [
  { play: "burst", streams: 800, events: 20, concurrent: 16 },
  { play: "burst", streams: 200, events: 500, concurrent: 16 },
];

/** Bytes of a process: on its heap, and of buffers outside of it. */
interface Memory {
  readonly heap: number;
  readonly outside: number;
}

/** What one round says of each run, in bytes. */
export interface Kept extends Memory {
  /** Of its response on the wire. */
  readonly wire: number;
}

const settled = async ({ probe }: Contender): Promise<Memory> => {
  if (probe === undefined) throw new Error("a gateway is asked what it holds");
  // What is collected at the first question may be what buffers hang on.
  await probe({ ask: "heap" });
  return { heap: await probe({ ask: "heap" }), outside: await probe({ ask: "outside" }) };
};

/** What each of so many runs keeps: what is more than half way between before and after. */
export const keptOf = (before: Memory, during: Memory, after: Memory, runs: number): Memory => {
  const of = (part: keyof Memory) => (during[part] - (before[part] + after[part]) / 2) / runs;
  return { heap: of("heap"), outside: of("outside") };
};

const measured = async (contender: Contender, burst: Burst, rounds: number): Promise<ReadonlyArray<Kept>> => {
  await warmUp(contender, "chat");
  await playBurst(contender, "chat", burst);
  await pause(overMs);
  const found: Array<Kept> = [];
  let before = await settled(contender);
  for (let round = 0; round < rounds; round += 1) {
    await playBurst(contender, "chat", burst);
    const during = await settled(contender);
    await pause(overMs);
    const after = await settled(contender);
    found.push({ ...keptOf(before, during, after, burst.streams), wire: lengthOf("chat", burst.events) });
    before = after;
  }
  return found;
};

const kib = (bytes: number): number => bytes / 1024;

/** The line of runs of so many events. */
export const lingerRow = (events: number, kept: ReadonlyArray<Kept>): Row => {
  const all = (of: (one: Kept) => number): Spread => spread(kept.map((one) => kib(of(one))));
  const [whole, beside] = [all(({ heap, outside }) => heap + outside), all((one) => one.heap + one.outside - one.wire)];
  const part = (name: keyof Memory) => median(kept.map((one) => kib(one[name]))).toFixed(1);
  const value = `${spreadText(whole, 1, "KiB")}, ${part("heap")} of it on the heap and ${part("outside")} outside; ${beside.median.toFixed(1)} beside the bytes of its response`;
  return rowOf(`a run of ${events} events`, value, { events, besideKib: beside.median, besideMaxKib: beside.max });
};

/** Measures runs of both lengths, each in a gateway of its own. */
export const linger = async (upstream: string, options: Options): Promise<Part> => {
  const rows: Array<Row> = [];
  for (const burst of bursts) {
    console.error(`${burst.streams} runs of ${burst.events} events that linger …`);
    const contender = await gateway("lingering", upstream, "file", flagsOf(liveFile, options, lingerMs));
    rows.push(lingerRow(burst.events, await measured(contender, burst, options.rounds)));
    await contender.end();
  }
  return { name: lingerTitle, rows };
};
