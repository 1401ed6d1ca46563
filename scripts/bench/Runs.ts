/**
 * Creates runs of the processor for the bench. Everything is on (facts, clocks, an in-memory recorder), and there is no person to ask.
 */
import { Data, Effect, Layer, ManagedRuntime, References, type Stream } from "effect";
import { RunRecorder, StreamProcessor, UserDecisions } from "../../src/index.ts";
import type { RunBase, RunOptions, TextOptions } from "../../src/runtime/contract/RunOptions.ts";
import type { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import type { BenchPart } from "./Events.ts";

/** The failure of a source. Its message does not matter here. */
export class SourceBroke extends Data.TaggedError("SourceBroke")<{ readonly message: string }> {}

/** Maximum runs of the recorder. No measurement starts more, so every run stays on record. */
const recordedRunsMax = 100_000;

/** Creates a processor with a recorder that has room for every run of the bench. */
export const makeRuntime = () =>
  ManagedRuntime.make(
    StreamProcessor.layer.pipe(
      Layer.provideMerge(
        Layer.merge(RunRecorder.layerMemory({ runsMax: recordedRunsMax }), UserDecisions.layerHeadless()),
      ),
    ),
  );

// Created once, as in a program in which all requests share them.
const provider = { id: "bench", model: "bench", reasoning: false };
const noTools: ReadonlyArray<ToolGuard.Tool> = [];
const observe = (part: BenchPart) => part.observation;

/** The options of a run over one source, without tools. */
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

/** Wraps an error of the source for the stream's error channel. */
export const makeSourceError = (error: unknown): SourceBroke => new SourceBroke({ message: String(error) });

/** Silences the log of runs that fail on purpose. */
export const withoutLog = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, References.MinimumLogLevel, "None");
