/**
 * Starts runs of the processor for the bench: everything on (facts, clocks, recorder in memory), and no person to ask.
 */
import { Data, Effect, Layer, ManagedRuntime, References, type Stream } from "effect";
import { RunRecorder, StreamProcessor, UserDecisions } from "../../src/index.ts";
import type { RunBase, RunOptions, TextOptions } from "../../src/runtime/contract/RunOptions.ts";
import type { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import type { BenchPart } from "./Events.ts";

/** A source fails with this; what it says does not matter here. */
export class SourceBroke extends Data.TaggedError("SourceBroke")<{ readonly message: string }> {}

/** More runs than any measurement starts: every one of them is on record. */
const recordedRunsMax = 100_000;

/** The processor with a recorder that has room for every run of the bench. */
export const makeRuntime = () =>
  ManagedRuntime.make(
    StreamProcessor.layer.pipe(
      Layer.provideMerge(
        Layer.merge(RunRecorder.layerMemory({ runsMax: recordedRunsMax }), UserDecisions.layerHeadless()),
      ),
    ),
  );

// As in a program: what all its requests share is made once.
const provider = { id: "bench", model: "bench", reasoning: false };
const noTools: ReadonlyArray<ToolGuard.Tool> = [];
const observe = (part: BenchPart) => part.observation;

/** A run without tools over one source. */
export const options = <E>(
  source: () => Stream.Stream<BenchPart, E>,
  more: Partial<RunBase<BenchPart, E, never>> & TextOptions<BenchPart> = {},
): RunOptions<BenchPart, E, never> => ({
  provider,
  tools: noTools,
  attempt: source,
  observe,
  ...more,
});

/** What an error of the source is in the stream's error channel. */
export const broke = (error: unknown): SourceBroke => new SourceBroke({ message: String(error) });

/** Runs that end badly by intent say so in the log: the bench's output is not the place. */
export const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, References.MinimumLogLevel, "None");
