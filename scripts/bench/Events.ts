/**
 * Makes the events that every contender reads: a start, text deltas, the terminal marker.
 */
import * as Observation from "../../src/domain/Observation.ts";

/** One event as a decoder gives it: its text beside what it proves. */
export interface BenchPart {
  readonly delta: string;
  readonly observation: Observation.Observation;
}

/** How fast a source gives its events: as fast as it is read, or one a macrotask. */
export type Pace = "saturated" | "paced";

/** Different deltas that are given in turn, so that no contender holds more for more events. */
const differentDeltas = 1024;

/** Parts of one array where a source gives arrays. */
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

/** What a source of so many deltas gives in all. */
export const eventsOf = (count: number): number => count + 2;

/** Gives the events one by one, with their terminal marker. */
export const events = (count: number, pace: Pace): AsyncGenerator<BenchPart> =>
  pace === "saturated" ? saturated(count) : paced(count);

/** Gives the events in arrays of 64, each array in a step of its own; the deltas must be a multiple of 64. */
export async function* arrays(count: number): AsyncGenerator<NonEmpty> {
  if (count % arrayParts !== 0) throw new Error(`expected a multiple of ${arrayParts} deltas, got ${count}`);
  yield [start];
  for (let index = 0; index < count / arrayParts; index += 1) yield chunks[index % chunks.length] ?? [start];
  yield [end];
}

/**
 * Gives the start and so many deltas, and then nothing for ever.
 *
 * @param hung is given the promise's resolve, so that the waiting source is rooted as a socket would be
 * @param beforeLast is called directly before the last delta is given
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
