/**
 * Measures the cost of waiting runs: heap per run while all are idle, and their CPU time.
 */
import { Effect, Stream } from "effect";
import { fromAsyncIterable, StreamProcessor } from "../../src/index.ts";
import { type BenchPart, hanging } from "./Events.ts";
import { settledHeap } from "./Heap.ts";
import { makeRuntime, makeSourceError, options, type SourceBroke, withoutLog } from "./Runs.ts";

/** The size of a measurement in one process. */
export interface IdleSize {
  /** The reader of the source: the processor, or Effect's Stream alone. */
  readonly reader: "processor" | "stream";
  /** The adapter that makes a stream of the source: this package's or Effect's. */
  readonly source: "ours" | "effect";
  readonly runs: number;
  /** Period in which the runs start, each at a different moment, in milliseconds. 0 starts them all at once. */
  readonly begin_within_ms: number;
  /** Duration of the CPU measurement, in milliseconds. 0 skips it. */
  readonly watch_ms: number;
}

/** Heap per run, in bytes, and CPU as a share of one core. */
export interface Idle {
  readonly bytes: number;
  readonly cpu_share: number;
}

/** Number of runs that are started and ended first, so that code and caches are not counted. */
const warmUpRuns = 500;

const runtime = makeRuntime();
const rooted: Array<() => void> = [];

/** Starts the runs, waits until each has emitted its parts, and measures the heap. */
export const measure = async (size: IdleSize): Promise<Idle> => {
  const processor = await runtime.runPromise(StreamProcessor);
  const first = await startAll(warmUpRuns, { ...size, begin_within_ms: 0 }, processor, withoutLog);
  await Promise.all(first.map((fiber) => Effect.runPromise(fiber.stop)));
  rooted.length = 0;
  const before = await settledHeap();
  const running = await startAll(size.runs, size, processor);
  const after = await settledHeap();
  const cpu_share = size.watch_ms === 0 ? 0 : await idleShare(size.watch_ms);
  if (running.length !== size.runs) throw new Error(`expected ${size.runs} runs, got ${running.length}`);
  return { bytes: (after - before) / size.runs, cpu_share };
};

interface Running {
  readonly stop: Effect.Effect<void>;
}

const startAll = async (
  count: number,
  { begin_within_ms, reader, source }: IdleSize,
  processor: StreamProcessor["Service"],
  wrap: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E> = (effect) => effect,
): Promise<ReadonlyArray<Running>> => {
  let quiet = 0;
  let allQuiet = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    allQuiet = resolve;
  });
  const hung = (resolve: () => void) => {
    rooted.push(resolve);
    quiet += 1;
    if (quiet === count) allQuiet();
  };
  const make = (): Stream.Stream<BenchPart, SourceBroke> =>
    source === "ours"
      ? fromAsyncIterable(() => hanging(1, hung), makeSourceError)
      : Stream.fromAsyncIterable(hanging(1, hung), makeSourceError);
  const running: Array<Running> = [];
  const from = performance.now();
  for (let index = 0; index < count; index += 1) {
    while (performance.now() - from < (index / count) * begin_within_ms) await pause(1);
    const read: Stream.Stream<unknown, unknown> = reader === "stream" ? make() : processor.run(options(make));
    const fiber = Effect.runFork(wrap(Stream.runForEach(read, () => Effect.void)));
    running.push({ stop: Effect.sync(() => fiber.interruptUnsafe()) });
  }
  await all;
  return running;
};

/** Delay before the CPU measurement, in milliseconds, in which compilers and finalizers finish. */
const settleMs = 2_000;

const idleShare = async (ms: number): Promise<number> => {
  await pause(settleMs);
  const from = performance.now();
  const before = process.cpuUsage();
  await pause(ms);
  const { system, user } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - from);
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
