/**
 * Measures the CPU time of one contender relative to a raw `for await` over the same events, in turns, in one process.
 */
import { contenders, raw } from "./Contenders.ts";
import { eventsOf, type Pace } from "./Events.ts";
import { median } from "./Median.ts";

/** The size of a measurement in one process. */
export interface ThroughputSize {
  readonly contender: string;
  readonly pace: Pace;
  /** Number of deltas of one round. */
  readonly deltas: number;
  /** Number of measured rounds. Others before them warm up. */
  readonly rounds: number;
}

/** CPU time per event, in nanoseconds. The ratio is the median of the rounds' ratios. */
export interface Throughput {
  readonly ratio: number;
  readonly ns: number;
  readonly raw_ns: number;
}

/** Number of rounds that warm up. The compilers run concurrently at first, and their time would be counted as the contender's. */
const warmUpRounds = 8;

/** Reads with both sides in turns. The order changes every round. */
export const measure = async ({ contender, deltas, pace, rounds }: ThroughputSize): Promise<Throughput> => {
  const read = contenders(contender);
  const own: Array<number> = [];
  const plain: Array<number> = [];
  const both = [
    async () => own.push(await cpuPerEvent(() => read(deltas, pace), deltas)),
    async () => plain.push(await cpuPerEvent(() => raw(deltas, pace), deltas)),
  ];
  for (let round = 0; round < warmUpRounds + rounds; round += 1) {
    for (const side of round % 2 === 0 ? both : both.toReversed()) await side();
  }
  const ns = own.slice(warmUpRounds);
  const raw_ns = plain.slice(warmUpRounds);
  return {
    ratio: median(ns.map((it, round) => it / (raw_ns[round] ?? Number.NaN))),
    ns: median(ns),
    raw_ns: median(raw_ns),
  };
};

const cpuPerEvent = async (read: () => Promise<number>, deltas: number): Promise<number> => {
  const before = process.cpuUsage();
  const seen = await read();
  const { system, user } = process.cpuUsage(before);
  if (seen !== eventsOf(deltas)) throw new Error(`expected ${eventsOf(deltas)} events, got ${seen}`);
  return ((user + system) * 1_000) / seen;
};
