/**
 * Wraps a language model of `effect/ai`: each of its requests (a step) is a run of StreamProcessor, and its tools run through ToolGuard.
 * EffectAi.ts states what a caller may rely on.
 */
import { Effect, Layer, Option, Stream } from "effect";
import { type AiError, LanguageModel, Model, type Response } from "effect/ai";
import type { Provider } from "../../domain/RunFacts.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { attemptOf, Call, type CallOptions, CurrentCall, type ObjectRequest, wholeAttemptOf } from "./Call.ts";
import { closeOpenCalls } from "./History.ts";
import { ofRun } from "./LanguageModelError.ts";
import { errorIn, type ReadPart } from "./Parts.ts";
import { StopSignal } from "./StopSignal.ts";
import type { AnyTools } from "./Tools.ts";

/**
 * Options for every run of a recovered model. With `reveal: "on_complete"` a response is delivered once it is complete, so a break is
 * replayed unseen, even for a caller that cannot discard.
 */
export interface Options
  extends Pick<RunOptions<never, never, never>, "budget" | "clocks" | "emptyIsFailure" | "policy" | "reveal"> {
  /** Names the provider, and says whether the model reasons. Default: the names from `effect/ai`'s `Model`. */
  readonly provider?: Provider;
  /**
   * `live` (the default) passes reasoning on as it arrives. A caller of `streamText` cannot discard it, so a break after it ends the
   * stream. `held` withholds it until the first text or the end of the response, so such a break is replayed unseen.
   */
  readonly reasoning?: "live" | "held";
  /** Renews the credentials after the provider has rejected them (`rejected.auth`). Tried once per run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown>;
}

/** The options, with a provider. */
export type RecoveryBase = Options & { readonly provider: Provider };

/** A wrapped model, and the options of its runs. */
export interface RecoveredModel {
  readonly model: LanguageModel.LanguageModel;
  readonly base: RecoveryBase;
}

/** The provider if neither the options nor `effect/ai` names one. */
const unnamed: Provider = { id: "effect-ai" };

const wrappedModels = new WeakMap<LanguageModel.LanguageModel, RecoveredModel>();

/** Returns the model inside a recovered model, with the options of its runs. A model that is not recovered is returned as it is. */
export const recoveredModel = (model: LanguageModel.LanguageModel): RecoveredModel =>
  wrappedModels.get(model) ?? { model, base: { provider: unnamed } };

/**
 * Provides a recovered model in place of the language model that it requires.
 *
 * @param options options of the model's runs
 */
export const layer = (
  options: Options = {},
): Layer.Layer<LanguageModel.LanguageModel, never, LanguageModel.LanguageModel | StreamProcessor | ToolGuard> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.flatMap(LanguageModel.LanguageModel, (model) => make(model, options)),
  );

/**
 * Creates a recovered model from another.
 *
 * @param model any language model
 * @param options options of its runs
 * @returns a model with the same types, requirements and errors; `interruptionOf` explains why a call failed for good
 */
export const make = Effect.fnUntraced(function* (
  model: LanguageModel.LanguageModel,
  options: Options = {},
): Effect.fn.Return<LanguageModel.LanguageModel, never, StreamProcessor | ToolGuard> {
  const processor = yield* StreamProcessor;
  const guard = yield* ToolGuard;
  const base: RecoveryBase = { ...options, provider: options.provider ?? (yield* providerOf) };
  const steps = yield* LanguageModel.make({
    streamText: (request) => streamStep(processor, base, model, request),
    generateText: (request) => generateStep(processor, base, model, request),
    supportsSystemMessagesInHistory: model.supportsSystemMessagesInHistory,
  });
  const wrapped = LanguageModel.LanguageModel.of({ ...steps, ...methods(steps, guard) });
  wrappedModels.set(wrapped, { model, base });
  return wrapped;
});

const providerOf = Effect.gen(function* () {
  const id = Option.getOrElse(yield* Effect.serviceOption(Model.ProviderName), () => unnamed.id);
  const model = Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName));
  return { id, ...(model === undefined ? {} : { model }) } satisfies RecoveryBase["provider"];
});

/** Runs one streamed step, for a caller that cannot discard. */
const streamStep = (
  processor: StreamProcessor["Service"],
  base: RecoveryBase,
  model: LanguageModel.LanguageModel,
  request: LanguageModel.ProviderOptions,
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.unwrap(
    Effect.map(CurrentCall, (current) => {
      const call = callOf(current);
      const run = processor.parts({
        ...base,
        ...call.signalOption,
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

/** Runs one step whose response arrives as a whole. */
const generateStep = (
  processor: StreamProcessor["Service"],
  base: RecoveryBase,
  model: LanguageModel.LanguageModel,
  request: LanguageModel.ProviderOptions,
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.gen(function* () {
    const call = callOf(yield* CurrentCall);
    const parts: Array<Response.AnyPartEncoded> = [];
    const run = processor.parts({
      ...base,
      ...call.signalOption,
      streaming: false,
      tools: call.begin(request.tools),
      attempt: wholeAttemptOf(model, request, call),
      observe,
    });
    yield* Stream.runForEach(run, (sent) =>
      Effect.sync(() => {
        call.registerCalls(sent);
        parts.push(...sent.parts);
      }),
    );
    // The parts are the content of a whole response, so the cast is safe.
    return parts as Array<Response.PartEncoded>;
  }).pipe(Effect.mapError((interrupted) => errorOf("generateText", interrupted)));

const observe = (sent: ReadPart) => sent.observation;

const callOf = (call: Call | undefined): Call => {
  if (call === undefined)
    throw new Error("a step of the recovered model ran outside a call of `EffectAi.layer`'s model");
  return call;
};

type StreamParts = readonly [Response.StreamPartEncoded, ...Array<Response.StreamPartEncoded>];

/** Returns the parts of a stream, in order. Their calls may be claimed from now on. */
const handOver = (call: Call, sent: ReadonlyArray<ReadPart>): StreamParts => {
  for (const it of sent) call.registerCalls(it);
  // A ReadPart of a stream contains exactly one stream part, and an array in a stream is never empty, so the cast is safe.
  return sent.flatMap((it) => it.parts) as unknown as StreamParts;
};

const errorOf = (method: string, interrupted: RunInterrupted): AiError.AiError =>
  ofRun(method, interrupted, errorIn(interrupted.cause));

type Streaming = (options: CallOptions) => Stream.Stream<Response.AnyPart, AiError.AiError>;
interface WholeResponse {
  readonly content: Array<Response.Part<AnyTools>>;
}
type Generating = (options: CallOptions) => Effect.Effect<WholeResponse, AiError.AiError>;
type ObjectOptions = CallOptions & ObjectRequest;

/** Creates the methods of the model. Each call has its own state, and its tools run through the guard. */
const methods = (
  steps: LanguageModel.LanguageModel,
  guard: ToolGuard["Service"],
): Pick<LanguageModel.LanguageModel, "generateObject" | "generateText" | "streamText"> => {
  // The methods have an overload for each type of toolkit. The code below does not depend on that type: it only replaces the toolkit with
  // one of the same tools, and returns parts unchanged.
  const stream = steps.streamText as unknown as Streaming;
  const generate = steps.generateText as unknown as Generating;

  const streamText: Streaming = (options) =>
    Stream.unwrap(
      Effect.map(StopSignal, (signal) => {
        const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal });
        const parts = stream({ ...options, toolkit: call.withGuard(options.toolkit) });
        return (call.resolves ? closeOpenCalls(parts) : parts).pipe(Stream.provideService(CurrentCall, call));
      }),
    );

  const generateText: Generating = (options) =>
    Effect.flatMap(StopSignal, (signal) => {
      const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal });
      return Effect.provideService(
        generate({ ...options, toolkit: call.withGuard(options.toolkit) }),
        CurrentCall,
        call,
      );
    });

  const generateObject = ({ objectName, schema, ...options }: ObjectOptions) =>
    Effect.flatMap(StopSignal, (signal) => {
      const object = { schema, ...(objectName === undefined ? {} : { objectName }) };
      const call = new Call(guard, { resolves: options.disableToolCallResolution !== true, signal, object });
      return generate({ ...options, toolkit: call.withGuard(options.toolkit) }).pipe(
        Effect.map(({ content }) => new LanguageModel.GenerateObjectResponse(call.value, content)),
        Effect.provideService(CurrentCall, call),
      );
    });

  // These casts restore the overloads that the casts above removed.
  const overloaded = { generateObject, generateText, streamText } as unknown;
  return overloaded as Pick<LanguageModel.LanguageModel, "generateObject" | "generateText" | "streamText">; // as above
};
