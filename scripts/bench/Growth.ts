/**
 * Measures the memory of a run after few and after many deltas: the heap while it is live, and the evidence on record.
 */
import { Effect, Stream } from "effect";
import { fromAsyncIterable, RunRecorder, StreamProcessor } from "../../src/index.ts";
import { hanging } from "./Events.ts";
import { settledHeap } from "./Heap.ts";
import { makeRuntime, makeSourceError, options, withoutLog } from "./Runs.ts";

/** The size of a measurement in one process. */
export interface GrowthSize {
  readonly few: number;
  readonly many: number;
  readonly rounds: number;
}

/** Additional heap of many deltas over few, in bytes, and the number of evidence records of both. */
export interface Growth {
  readonly more_bytes: ReadonlyArray<number>;
  readonly evidence_few: number;
  readonly evidence_many: number;
}

const runtime = makeRuntime();

/** Measures a run of few and a run of many deltas in turns. The first pair warms up. */
export const measure = async ({ few, many, rounds }: GrowthSize): Promise<Growth> => {
  const more: Array<number> = [];
  let evidence: readonly [number, number] = [0, 0];
  for (let round = 0; round <= rounds; round += 1) {
    const short = await measureHeld(`few${round}`, few);
    const long = await measureHeld(`many${round}`, many);
    if (round > 0) more.push(long.bytes - short.bytes);
    evidence = [short.evidence, long.evidence];
  }
  return { more_bytes: more, evidence_few: evidence[0], evidence_many: evidence[1] };
};

interface Held {
  readonly bytes: number;
  readonly evidence: number;
}

/** Measures a live run after its last delta. The evidence is counted after it has ended. */
const measureHeld = async (runId: string, deltas: number): Promise<Held> => {
  const processor = await runtime.runPromise(StreamProcessor);
  const recorder = await runtime.runPromise(RunRecorder);
  const rooted: Array<() => void> = [];
  const before = await settledHeap();
  const source = () => fromAsyncIterable(() => hanging(deltas, (resolve) => rooted.push(resolve)), makeSourceError);
  let parts = 0;
  let seen = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const read = Stream.runForEach(processor.run(options(source, { runId })), (event) => {
    if (event._tag === "Part") parts += 1;
    if (parts === deltas + 1) seen();
    return Effect.void;
  });
  const fiber = Effect.runFork(withoutLog(read));
  await all;
  const bytes = (await settledHeap()) - before;
  await Effect.runPromise(processor.cancel(runId));
  await new Promise((resolve) => fiber.addObserver(resolve));
  const record = await Effect.runPromise(recorder.run(runId));
  if (record === undefined) throw new Error(`${runId} is not on record`);
  const { first, last, omitted } = record.evidence;
  return { bytes, evidence: first.length + last.length + omitted };
};
