/**
 * The contenders: ways to read the same events to their end. Each returns the number of events it received.
 */
import { Cause, Effect, Stream } from "effect";
import { fromAsyncIterable, StreamProcessor } from "../../src/index.ts";
import { arrays, type BenchPart, events, type Pace } from "./Events.ts";
import { makeRuntime, makeSourceError, options, SourceBroke } from "./Runs.ts";

/** Reads `count` deltas and returns the number of events it received. */
export type Contender = (count: number, pace: Pace) => Promise<number>;

/** The baseline of all comparisons. */
export const raw: Contender = async (count, pace) => {
  let seen = 0;
  for await (const part of events(count, pace)) if (part.observation !== undefined) seen += 1;
  return seen;
};

/** Finds a contender by its name. */
export const contenders = (name: string): Contender => {
  const found = table[name];
  if (found === undefined) throw new Error(`unknown contender ${name}`);
  return found;
};

const ours = (count: number, pace: Pace) => fromAsyncIterable(() => events(count, pace), makeSourceError);
const effects = (count: number, pace: Pace) => Stream.fromAsyncIterable(events(count, pace), makeSourceError);

/** A pull of arrays with one asynchronous step each, like a transport that decodes chunks of bytes. */
const ofArrays = (count: number): Stream.Stream<BenchPart, SourceBroke> => {
  const iterator = arrays(count);
  const next = Effect.tryPromise({ try: () => iterator.next(), catch: makeSourceError });
  return Stream.fromPull(
    Effect.succeed(Effect.flatMap(next, (it) => (it.done === true ? Cause.done() : Effect.succeed(it.value)))),
  );
};

const each = async <A, E>(stream: Stream.Stream<A, E>): Promise<number> => {
  let seen = 0;
  const one = () => {
    seen += 1;
    return Effect.void;
  };
  await Effect.runPromise(Stream.runForEach(stream, one));
  return seen;
};

const eachArray = async <A, E>(stream: Stream.Stream<A, E>): Promise<number> => {
  let seen = 0;
  const all = (chunk: ReadonlyArray<A>) => {
    seen += chunk.length;
    return Effect.void;
  };
  await Effect.runPromise(Stream.runForEachArray(stream, all));
  return seen;
};

const runtime = makeRuntime();

/** Reads a run. It emits two events besides the parts: `AttemptStarted` and `RunCompleted`. */
const countEvents = async (
  read: <A, E>(stream: Stream.Stream<A, E>) => Promise<number>,
  source: () => Stream.Stream<BenchPart, SourceBroke>,
): Promise<number> => {
  const processor = await runtime.runPromise(StreamProcessor);
  return (await read(processor.run(options(source)))) - 2;
};

const table: Readonly<Record<string, Contender>> = {
  raw,
  effect: (count, pace) => each(effects(count, pace)),
  timeout: (count, pace) =>
    each(
      Stream.timeoutOrElse(effects(count, pace), {
        duration: "5 minutes",
        orElse: () => Stream.fail(new SourceBroke({ message: "stalled" })),
      }),
    ),
  ours: (count, pace) => each(ours(count, pace)),
  processor: (count, pace) => countEvents(each, () => ours(count, pace)),
  processor_effect: (count, pace) => countEvents(each, () => effects(count, pace)),
  effect_arrays: (count) => eachArray(ofArrays(count)),
  processor_arrays: (count) => countEvents(eachArray, () => ofArrays(count)),
  ai_sdk: async (count, pace) => {
    const { readWithAiSdk } = await import("./AiSdk.ts");
    return readWithAiSdk(count, pace);
  },
};
