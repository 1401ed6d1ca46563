/**
 * Measures the delay with which a stall reaches the caller after its deadline.
 */
import { Effect, Exit, Stream } from "effect";
import { fromAsyncIterable, StreamProcessor } from "../../src/index.ts";
import { hanging } from "./Events.ts";
import { quantile } from "./Median.ts";
import { makeRuntime, makeSourceError, options, withoutLog } from "./Runs.ts";

/** The size of a measurement in one process. */
export interface StallsSize {
  readonly runs: number;
  /** Timeout of the idle clock, in milliseconds. */
  readonly idle_ms: number;
  /** Interval between the starts of two runs, in milliseconds. */
  readonly apart_ms: number;
}

/** Milliseconds from the deadline to the first report to the caller. */
export interface Stalls {
  readonly first: number;
  readonly median: number;
  readonly last: number;
}

const runtime = makeRuntime();

/** Starts runs that emit one delta and then hang. Each delay counts from that run's last delta. */
export const measure = async ({ apart_ms, idle_ms, runs }: StallsSize): Promise<Stalls> => {
  const processor = await runtime.runPromise(StreamProcessor);
  const rooted: Array<() => void> = [];
  const one = (index: number) =>
    Effect.gen(function* () {
      yield* Effect.sleep(index * apart_ms);
      let last = 0;
      let told: number | undefined;
      const source = () =>
        fromAsyncIterable(
          () =>
            hanging(
              1,
              (resolve) => rooted.push(resolve),
              () => {
                last = performance.now();
              },
            ),
          makeSourceError,
        );
      // Without retries the break reaches the policy at once, and the headless default stops the run.
      const run = processor.run(options(source, { clocks: { idle: idle_ms }, budget: { max_auto_retries: 0 } }));
      const exit = yield* Effect.exit(
        Stream.runForEach(run, (event) => {
          if (event._tag !== "Part" && event._tag !== "AttemptStarted") told ??= performance.now();
          return Effect.void;
        }),
      );
      if (Exit.isSuccess(exit)) return yield* Effect.die(new Error("a stalled run succeeded"));
      return (told ?? performance.now()) - last - idle_ms;
    });
  // The first runs warm up and are not counted.
  await Effect.runPromise(withoutLog(Effect.forEach(warmUp, one, { concurrency: "unbounded" })));
  const all = Array.from({ length: runs }, (_, index) => index);
  const late = await Effect.runPromise(withoutLog(Effect.forEach(all, one, { concurrency: "unbounded" })));
  return { first: Math.min(...late), median: quantile(late, 0.5), last: Math.max(...late) };
};

const warmUp = Array.from({ length: 20 }, (_, index) => index);
