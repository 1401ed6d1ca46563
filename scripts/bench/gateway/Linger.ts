/**
 * Measures the memory of runs that linger after their end: that of a gateway with many of them, compared with the same gateway before they
 * started and after they expired. Memory that a run leaves for longer is not included.
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

/** Linger time of the runs, in milliseconds. It is long enough to play them all, and short enough to wait for its end in each round. */
const lingerMs = 12_000;

/** Time after which no run lingers any more, in milliseconds. */
const overMs = lingerMs + 3_000;

/** Loads within a gateway's limits (1,024 runs, 256 MiB), so that no run evicts another. */
const bursts: ReadonlyArray<Burst> = [
  { play: "burst", streams: 800, events: 20, concurrent: 16 },
  { play: "burst", streams: 200, events: 500, concurrent: 16 },
];

/** Memory of a process, in bytes: its heap, and buffers outside the heap. */
interface Memory {
  readonly heap: number;
  readonly outside: number;
}

/** Memory per run in one round, in bytes. */
export interface Kept extends Memory {
  /** Length of its response on the wire. */
  readonly wire: number;
}

const waitUntilSettled = async ({ probe }: Contender): Promise<Memory> => {
  if (probe === undefined) throw new Error("expected a gateway with a probe");
  // The first collection may release objects that hold buffers, so the buffers are freed only by the second.
  await probe({ ask: "heap" });
  return { heap: await probe({ ask: "heap" }), outside: await probe({ ask: "outside" }) };
};

/** Memory per run: the excess over the average of before and after. */
export const keptOf = (before: Memory, during: Memory, after: Memory, runs: number): Memory => {
  const of = (part: keyof Memory) => (during[part] - (before[part] + after[part]) / 2) / runs;
  return { heap: of("heap"), outside: of("outside") };
};

const measure = async (contender: Contender, burst: Burst, rounds: number): Promise<ReadonlyArray<Kept>> => {
  await warmUp(contender, "chat");
  await playBurst(contender, "chat", burst);
  await pause(overMs);
  const found: Array<Kept> = [];
  let before = await waitUntilSettled(contender);
  for (let round = 0; round < rounds; round += 1) {
    await playBurst(contender, "chat", burst);
    const during = await waitUntilSettled(contender);
    await pause(overMs);
    const after = await waitUntilSettled(contender);
    found.push({ ...keptOf(before, during, after, burst.streams), wire: lengthOf("chat", burst.events) });
    before = after;
  }
  return found;
};

const kib = (bytes: number): number => bytes / 1024;

/** The row of runs with a number of events. */
export const lingerRow = (events: number, kept: ReadonlyArray<Kept>): Row => {
  const all = (of: (one: Kept) => number): Spread => spread(kept.map((one) => kib(of(one))));
  const [whole, beside] = [all(({ heap, outside }) => heap + outside), all((one) => one.heap + one.outside - one.wire)];
  const part = (name: keyof Memory) => median(kept.map((one) => kib(one[name]))).toFixed(1);
  const value = `${spreadText(whole, 1, "KiB")}, ${part("heap")} of it on the heap and ${part("outside")} outside; ${beside.median.toFixed(1)} in addition to the bytes of its response`;
  return rowOf(`a run of ${events} events`, value, { events, besideKib: beside.median, besideMaxKib: beside.max });
};

/** Measures runs of both lengths, each in a new gateway. */
export const linger = async (upstream: string, options: Options): Promise<Part> => {
  const rows: Array<Row> = [];
  for (const burst of bursts) {
    console.error(`${burst.streams} runs of ${burst.events} events that linger …`);
    const contender = await gateway("lingering", upstream, "file", flagsOf(liveFile, options, lingerMs));
    rows.push(lingerRow(burst.events, await measure(contender, burst, options.rounds)));
    await contender.end();
  }
  return { name: lingerTitle, rows };
};
