/**
 * Creates the events that every contender reads: a start, text deltas, and the terminal marker.
 */
import * as Observation from "../../src/domain/Observation.ts";

/** One event in the form of a decoder's output: its text, and the observation that it proves. */
export interface BenchPart {
  readonly delta: string;
  readonly observation: Observation.Observation;
}

/** The pace of a source: as fast as it is read, or one event per macrotask. */
export type Pace = "saturated" | "paced";

/** Number of different deltas. They repeat, so that no contender holds more memory for more events. */
const differentDeltas = 1024;

/** Number of parts of one array, for sources of arrays. */
const arrayParts = 64;

const start: BenchPart = { delta: "", observation: Observation.lifecycle };
const end: BenchPart = { delta: "", observation: Observation.terminal("stop") };
const deltas = Array.from({ length: differentDeltas }, (_, index): BenchPart => {
  const delta = `word${index} `;
  return { delta, observation: Observation.text(delta.length) };
});

type NonEmpty = readonly [BenchPart, ...Array<BenchPart>];

const chunks = Array.from({ length: differentDeltas / arrayParts }, (_, index): NonEmpty => {
  const [first, ...rest] = deltas.slice(index * arrayParts, (index + 1) * arrayParts);
  return [first ?? start, ...rest];
});

/** Number of events of a source with `count` deltas. */
export const eventsOf = (count: number): number => count + 2;

/** Emits the events one by one, including the terminal marker. */
export const events = (count: number, pace: Pace): AsyncGenerator<BenchPart> =>
  pace === "saturated" ? saturated(count) : paced(count);

/** Emits the events in arrays of 64, each in a separate step. `count` must be a multiple of 64. */
export async function* arrays(count: number): AsyncGenerator<NonEmpty> {
  if (count % arrayParts !== 0) throw new Error(`expected a multiple of ${arrayParts} deltas, got ${count}`);
  yield [start];
  for (let index = 0; index < count / arrayParts; index += 1) yield chunks[index % chunks.length] ?? [start];
  yield [end];
}

/**
 * Emits the start and `count` deltas, then hangs forever.
 *
 * @param hung receives the promise's resolve, which keeps the waiting source reachable like a socket would
 * @param beforeLast called directly before the last delta
 */
export async function* hanging(
  count: number,
  hung: (resolve: () => void) => void,
  beforeLast?: () => void,
): AsyncGenerator<BenchPart> {
  yield start;
  for (let index = 0; index < count; index += 1) {
    if (index === count - 1) beforeLast?.();
    yield at(index);
  }
  await new Promise<void>(hung);
}

async function* saturated(count: number): AsyncGenerator<BenchPart> {
  yield start;
  for (let index = 0; index < count; index += 1) yield at(index);
  yield end;
}

async function* paced(count: number): AsyncGenerator<BenchPart> {
  yield start;
  for (let index = 0; index < count; index += 1) {
    await macrotask();
    yield at(index);
  }
  await macrotask();
  yield end;
}

const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const at = (index: number): BenchPart => deltas[index % differentDeltas] ?? start;
