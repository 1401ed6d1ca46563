/**
 * Makes any language model of `effect/ai` recoverable, by one Layer and without a change of a type.
 *
 * Every request of the model, one step, is a run of StreamProcessor; the tools of a toolkit run outside of its attempts and
 * through ToolGuard, so that a failure in step n never runs a tool of an earlier step again. `streamText` is a stream of
 * parts whose consumers (`Chat` above all) cannot discard: what it has handed over stays. The lifecycle prefix is held until
 * content comes, and calls until the provider's terminal marker, so that a break before the first word is replayed unseen
 * and no history ever holds a discarded part or a call without its result. `EffectAi.run` gives the run's events to those
 * who can discard.
 *
 * A call settles only after its answer is whole here, so nothing is ever there to continue from: `can_continue` is false
 * for the three methods of the model, and true for `run`.
 */
import { Effect, Layer, Option, Stream } from "effect";
import { type AiError, LanguageModel, Model, type Response } from "effect/ai";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { type Base, type Options, remember, unnamed } from "./Base.ts";
import { attemptOf, Call, type CallOptions, CurrentCall, type ObjectRequest, wholeAttemptOf } from "./Call.ts";
import { closed } from "./History.ts";
import { ofRun } from "./LanguageModelError.ts";
import { errorIn, type Sent } from "./Parts.ts";
import { StopSignal } from "./StopSignal.ts";
import type { AnyTools } from "./Tools.ts";

export { type AgentOptions, run } from "./AgentRun.ts";
export type { Options } from "./Base.ts";
export type { AgentEvent, ToolSettled } from "./Event.ts";
export { interruptionOf } from "./LanguageModelError.ts";
export { StopSignal } from "./StopSignal.ts";
export { ToolEffect } from "./Tools.ts";
export { Transcript } from "./Transcript.ts";

/**
 * Recovers the language model that is provided to it.
 *
 * @param options what its runs are made with
 */
export const layer = (
  options: Options = {},
): Layer.Layer<LanguageModel.LanguageModel, never, LanguageModel.LanguageModel | StreamProcessor | ToolGuard> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.flatMap(LanguageModel.LanguageModel, (model) => make(model, options)),
  );

/**
 * Makes a recovered model of another.
 *
 * @param model any language model
 * @param options what its runs are made with
 * @returns a model with the same types, requirements and errors; `interruptionOf` says why it gave up
 */
export const make = Effect.fnUntraced(function* (
  model: LanguageModel.LanguageModel,
  options: Options = {},
): Effect.fn.Return<LanguageModel.LanguageModel, never, StreamProcessor | ToolGuard> {
  const processor = yield* StreamProcessor;
  const guard = yield* ToolGuard;
  const base: Base = { ...options, provider: options.provider ?? (yield* providerOf) };
  const steps = yield* LanguageModel.make({
    streamText: (request) => streamed(processor, base, model, request),
    generateText: (request) => generated(processor, base, model, request),
    supportsSystemMessagesInHistory: model.supportsSystemMessagesInHistory,
  });
  const wrapped = LanguageModel.LanguageModel.of({ ...steps, ...methods(steps, guard) });
  remember(wrapped, { model, base });
  return wrapped;
});

const providerOf = Effect.gen(function* () {
  const id = Option.getOrElse(yield* Effect.serviceOption(Model.ProviderName), () => unnamed.id);
  const model = Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName));
  return { id, ...(model === undefined ? {} : { model }) } satisfies Base["provider"];
});

/** One streamed step, for a caller that cannot discard. */
const streamed = (
  processor: StreamProcessor["Service"],
  base: Base,
  model: LanguageModel.LanguageModel,
  request: LanguageModel.ProviderOptions,
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.unwrap(
    Effect.map(CurrentCall, (current) => {
      const call = callOf(current);
      const run = processor.parts({
        ...base,
        ...call.heeding,
        tools: call.begin(request.tools),
        attempt: attemptOf(model, { ...request, reasoning: base.reasoning }),
        observe,
      });
      return run.pipe(
        Stream.mapArray((sent) => handOver(call, sent)),
        Stream.mapError((interrupted) => errorOf("streamText", interrupted)),
      );
    }),
  );

/** One step whose answer comes whole. */
const generated = (
  processor: StreamProcessor["Service"],
  base: Base,
  model: LanguageModel.LanguageModel,
  request: LanguageModel.ProviderOptions,
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.gen(function* () {
    const call = callOf(yield* CurrentCall);
    const parts: Array<Response.AnyPartEncoded> = [];
    const run = processor.parts({
      ...base,
      ...call.heeding,
      streaming: false,
      tools: call.begin(request.tools),
      attempt: wholeAttemptOf(model, request, call),
      observe,
    });
    yield* Stream.runForEach(run, (sent) =>
      Effect.sync(() => {
        call.handed(sent);
        parts.push(...sent.parts);
      }),
    );
    // A whole answer has the parts of a whole answer: they come from the content of one.
    return parts as Array<Response.PartEncoded>;
  }).pipe(Effect.mapError((interrupted) => errorOf("generateText", interrupted)));

const observe = (sent: Sent) => sent.observation;

const callOf = (call: Call | undefined): Call => {
  if (call === undefined) throw new Error("a step of a recovered model was run outside of the model");
  return call;
};

type StreamParts = readonly [Response.StreamPartEncoded, ...Array<Response.StreamPartEncoded>];

/** The parts of a stream, one each; their calls may be claimed from here on. */
const handOver = (call: Call, sent: ReadonlyArray<Sent>): StreamParts => {
  for (const it of sent) call.handed(it);
  // Every Sent of a stream holds exactly the one stream part that it was read from, and an array of a stream is never empty.
  return sent.flatMap((it) => it.parts) as unknown as StreamParts;
};

const errorOf = (method: string, interrupted: RunInterrupted): AiError.AiError =>
  ofRun(method, interrupted, errorIn(interrupted.cause));

type Streaming = (options: CallOptions) => Stream.Stream<Response.AnyPart, AiError.AiError>;
interface Answer {
  readonly content: Array<Response.Part<AnyTools>>;
}
type Generating = (options: CallOptions) => Effect.Effect<Answer, AiError.AiError>;
type ObjectOptions = CallOptions & ObjectRequest;

/** The model's own methods, each call with its run and its tools behind the guard. */
const methods = (
  steps: LanguageModel.LanguageModel,
  guard: ToolGuard["Service"],
): Pick<LanguageModel.LanguageModel, "generateObject" | "generateText" | "streamText"> => {
  // The methods are overloaded by the type of the toolkit. Nothing below depends on it: options go in as they came but for a
  // toolkit of the same tools, and parts come out as they are.
  const stream = steps.streamText as unknown as Streaming;
  const generate = steps.generateText as unknown as Generating;

  const streamText: Streaming = (options) =>
    Stream.unwrap(
      Effect.map(StopSignal, (signal) => {
        const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal });
        const parts = stream({ ...options, toolkit: call.guarded(options.toolkit) });
        return (call.resolves ? closed(parts) : parts).pipe(Stream.provideService(CurrentCall, call));
      }),
    );

  const generateText: Generating = (options) =>
    Effect.flatMap(StopSignal, (signal) => {
      const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal });
      return Effect.provideService(generate({ ...options, toolkit: call.guarded(options.toolkit) }), CurrentCall, call);
    });

  const generateObject = ({ objectName, schema, ...options }: ObjectOptions) =>
    Effect.flatMap(StopSignal, (signal) => {
      const object = { schema, ...(objectName === undefined ? {} : { objectName }) };
      const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal, object });
      return generate({ ...options, toolkit: call.guarded(options.toolkit) }).pipe(
        Effect.map(({ content }) => new LanguageModel.GenerateObjectResponse(call.value, content)),
        Effect.provideService(CurrentCall, call),
      );
    });

  // The casts give back the overloads that were taken away above, by the same methods.
  const overloaded = { generateObject, generateText, streamText } as unknown;
  return overloaded as Pick<LanguageModel.LanguageModel, "generateObject" | "generateText" | "streamText">; // as above
};
