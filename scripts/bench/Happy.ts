/**
 * Measures the CPU time of a whole short run that never breaks: the cost of a stream beyond its events.
 */
import { Effect, Stream } from "effect";
import { fromAsyncIterable, StreamProcessor } from "../../src/index.ts";
import { events } from "./Events.ts";
import { median } from "./Median.ts";
import { makeRuntime, makeSourceError, options } from "./Runs.ts";

/** The size of a measurement in one process. */
export interface HappySize {
  /** `direct`: the attempt's own source. `mapped`: a stream derived from it, as most embedders use. */
  readonly source: "direct" | "mapped";
  /** Number of events of a run, including its start and its marker. */
  readonly events: number;
  /** Number of runs of one round, one after another. */
  readonly runs: number;
  /** Number of measured rounds. Others before them warm up. */
  readonly rounds: number;
}

/** CPU time per run, in microseconds, and that of the same stream read without a processor. */
export interface Happy {
  readonly us: number;
  readonly stream_us: number;
}

/** Number of rounds that warm up. The compilers run concurrently at first, and their time would be counted as the runs'. */
const warmUpRounds = 6;

const runtime = makeRuntime();

/** Measures whole runs and bare streams in turns. */
export const measure = async ({ events: count, rounds, runs, source }: HappySize): Promise<Happy> => {
  const direct = () => fromAsyncIterable(() => events(count - 2, "saturated"), makeSourceError);
  const given = source === "direct" ? direct : () => Stream.map(direct(), (part) => part);
  const run = Effect.flatMap(StreamProcessor, (processor) => Stream.runDrain(processor.run(options(given))));
  const stream = Effect.suspend(() => Stream.runDrain(given()));
  const own: Array<number> = [];
  const bare: Array<number> = [];
  for (let round = 0; round < warmUpRounds + rounds; round += 1) {
    own.push(await cpuPerRun(run, runs));
    bare.push(await cpuPerRun(stream, runs));
  }
  return { us: median(own.slice(warmUpRounds)), stream_us: median(bare.slice(warmUpRounds)) };
};

const cpuPerRun = async <E>(run: Effect.Effect<void, E, StreamProcessor>, runs: number): Promise<number> => {
  const before = process.cpuUsage();
  await runtime.runPromise(Effect.repeat(run, { times: runs - 1 }));
  const { system, user } = process.cpuUsage(before);
  return (user + system) / runs;
};
