/**
 * Uses the id of the run again and records the outcome.
 */
import { Context, Effect, Exit, Layer, type Scope, Stream } from "effect";
import { RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import type { Journal, Part } from "./Journal.ts";
import type { Again } from "./Scenario.ts";
import type { Surface } from "./world/Consumer.ts";
import type { ProviderBroke } from "./world/Provider.ts";

/** The parts of the first run that a second use needs. */
interface First {
  readonly surface: Surface;
  readonly options: RunOptions<Part, ProviderBroke, never>;
  readonly processor: StreamProcessor["Service"];
  /** Another processor with the same record. */
  readonly layer: Layer.Layer<StreamProcessor>;
  readonly scope: Scope.Scope;
}

export const repeated = ({ how }: Again, first: First, journal: Journal): Effect.Effect<void> =>
  Effect.gen(function* () {
    const stream: Stream.Stream<unknown, RunInterrupted> =
      how === "same_stream" ? first.surface.stream : (yield* processorOf(how, first)).run(first.options);
    journal.add({ what: "again", phase: "starts" });
    const exit = yield* Effect.exit(Stream.runDrain(stream));
    journal.add({ what: "again", phase: isRefused(exit) ? "refused" : "ends" });
  });

const processorOf = (how: Again["how"], { layer, processor, scope }: First) =>
  how === "new_stream"
    ? Effect.succeed(processor)
    : Effect.map(Layer.buildWithScope(Layer.fresh(layer), scope), (context) => Context.get(context, StreamProcessor));

const isRefused = (exit: Exit.Exit<void, RunInterrupted>): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) => reason._tag === "Fail" && reason.error instanceof RunInterrupted && reason.error.reason === "refused",
  );
