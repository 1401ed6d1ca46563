/**
 * Holds the state of one call of a recovered language model: its run, the delivered tool calls, and the tools that handle them.
 */
import { Context, Effect, Option, Stream } from "effect";
import type { AiError } from "effect/ai";
import { type LanguageModel, type Response, ResponseIdTracker, type Tool } from "effect/ai";
import type { ProviderError } from "../../client/index.ts";
import type { ToolBoundary } from "../../domain/SideEffects.ts";
import type { AttemptContext, RunOptions } from "../../runtime/contract/RunOptions.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";
import type { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { mendPrompt } from "./History.ts";
import { sourceOf } from "./LanguageModelError.ts";
import { PartFold, type ReadPart } from "./Parts.ts";
import { type AnyToolkit, boundaries, type Claim, type Guarded, guardToolkit, wireName } from "./Tools.ts";

/** The options of a model call that this adapter reads. */
export interface CallOptions {
  readonly toolkit?: unknown;
  readonly disableToolCallResolution?: boolean | undefined;
}

/** The schema of a structured response. */
export interface ObjectRequest {
  readonly schema: unknown;
  readonly objectName?: string;
}

/** Facts about a model call that its options and services determine. */
export interface CallRequest {
  /** True if the model runs the tools itself. Otherwise the caller runs them, unseen by this adapter. */
  readonly resolves: boolean;
  /** Signal of the user's Stop. */
  readonly signal: AbortSignal | undefined;
  readonly object?: ObjectRequest;
}

interface HandedCall {
  readonly name: string;
  readonly id: string;
  readonly reference: CallReference;
}

/** State of one call of a recovered model. */
export class Call {
  readonly #guard: ToolGuard["Service"];
  readonly resolves: boolean;
  readonly object: ObjectRequest | undefined;
  readonly #signal: AbortSignal | undefined;
  /** Decoded value of a structured response. */
  value: unknown;
  #handed: Array<HandedCall> = [];
  #started = false;
  /** Tools by their names in the toolkit. */
  #tools: ReadonlyMap<string, ToolBoundary | Guarded> = new Map();

  constructor(guard: ToolGuard["Service"], { object, resolves, signal }: CallRequest) {
    this.#guard = guard;
    this.resolves = resolves;
    this.object = object;
    this.#signal = signal;
  }

  /** The option that passes the user's Stop to the run of the call. */
  get signalOption(): Pick<RunOptions<never, never, never>, "signal"> {
    return this.#signal === undefined ? {} : { signal: this.#signal };
  }

  /** Prepares the tools of a request for a run. From now on, the call's toolkit handles only calls that the run has delivered. */
  begin(tools: ReadonlyArray<Tool.Any>): ReadonlyArray<ToolBoundary> {
    this.#started = true;
    this.#handed = [];
    const made = boundaries(tools, this.resolves ? this.#guard : undefined);
    this.#tools = new Map(made.map((tool, at) => [String(tools[at]?.name), tool]));
    return made;
  }

  /** Registers the tool calls in a delivered part, so that the toolkit may claim them. */
  registerCalls(sent: ReadPart): void {
    const { attempt, calls, run_id } = sent;
    for (const { id, key, name } of calls) this.#handed.push({ name, id, reference: { run_id, attempt, call: key } });
  }

  /** Returns the toolkit of the call, wrapped by the guard. */
  withGuard(toolkit: unknown): unknown {
    if (toolkit === undefined || !this.resolves) return toolkit;
    // The type of the options shows that this is a toolkit with handlers, or an Effect of one.
    const given = toolkit as AnyToolkit | Effect.Effect<AnyToolkit>;
    return Effect.isEffect(given)
      ? Effect.map(given, (it) => guardToolkit(it, this.#claim, this.#signal))
      : guardToolkit(given, this.#claim, this.#signal);
  }

  /**
   * Claims a tool call. A tool call that a person approved in an earlier turn runs before the request and belongs to no run, so it is
   * unguarded.
   */
  readonly #claim: Claim = (name, id) => {
    if (!this.#started) return "unguarded";
    const at = this.#handed.findIndex((call) => call.name === name && call.id === id);
    const [call] = at === -1 ? [] : this.#handed.splice(at, 1);
    const tool = this.#tools.get(name);
    return call === undefined || tool === undefined || !("run" in tool)
      ? "refused"
      : { tool, reference: call.reference };
  };
}

/** The model call to which a request belongs. */
export const CurrentCall = Context.Reference<Call | undefined>("effect-stream-recovery/effect-ai/CurrentCall", {
  defaultValue: () => undefined,
});

/** The attempt to which a request belongs. A provider package, for example `ProviderModel`, uses it to report its progress. */
export const CurrentAttempt = Context.Reference<AttemptContext | undefined>(
  "effect-stream-recovery/effect-ai/CurrentAttempt",
  { defaultValue: () => undefined },
);

/** The fields of an `effect/ai` request that an attempt needs. */
export type StepRequest = Pick<LanguageModel.ProviderOptions, "prompt" | "toolChoice" | "tools"> &
  Partial<Pick<LanguageModel.ProviderOptions, "incrementalPrompt" | "previousResponseId" | "toolCallValidation">> & {
    readonly reasoning?: "live" | "held" | undefined;
  };

/** Creates the attempts of one streamed request. Tool calls are resolved outside the attempts. */
export const attemptOf = (
  model: LanguageModel.LanguageModel,
  request: StepRequest,
): ((attempt: AttemptContext) => Stream.Stream<ReadPart, AiError.AiError | ProviderError>) => {
  const options = requestOptions(request);
  return (attempt) =>
    Stream.suspend(() => {
      const fold = foldOf(attempt, request);
      return streamOf(model, options).pipe(Stream.map((part) => fold.read(part)));
    }).pipe(
      Stream.mapError(sourceOf),
      Stream.provideService(ResponseIdTracker.ResponseIdTracker, trackerOf(request)),
      Stream.provideService(CurrentAttempt, attempt),
    );
};

/** Creates the attempts of a request for a whole response, which is structured if the call asks for an object. */
export const wholeAttemptOf = (
  model: LanguageModel.LanguageModel,
  request: StepRequest,
  call: Call,
): ((attempt: AttemptContext) => Stream.Stream<ReadPart, AiError.AiError | ProviderError>) => {
  const options = requestOptions(request);
  return (attempt) =>
    Stream.fromEffect(
      wholeOf(model, options, call).pipe(
        Effect.map((parts) => foldOf(attempt, request).readWhole(parts)),
        Effect.mapError(sourceOf),
        Effect.provideService(ResponseIdTracker.ResponseIdTracker, trackerOf(request)),
        Effect.provideService(CurrentAttempt, attempt),
      ),
    );
};

/** Creates the fold of an attempt. It maps the names of tools in the toolkit to the names under which the run records them. */
const foldOf = (attempt: AttemptContext, { reasoning, toolCallValidation, tools }: StepRequest): PartFold =>
  new PartFold(attempt, {
    names: new Map(tools.map((tool) => [String(tool.name), wireName(tool)])),
    deferred: toolCallValidation === "deferred",
    holdsReasoning: reasoning === "held",
  });

/** Creates the options of a request. Validation is deferred: the code that resolves a tool call validates it, outside the attempt. */
const requestOptions = ({ prompt, toolChoice, tools }: StepRequest) => ({
  prompt: mendPrompt(prompt),
  ...(tools.length === 0 ? {} : { toolkit: withoutHandlers(tools), toolChoice }),
  disableToolCallResolution: true as const,
  toolCallValidation: "deferred" as const,
});

type RequestOptions = ReturnType<typeof requestOptions>;

const withoutHandlers = (tools: ReadonlyArray<Tool.Any>): AnyToolkit => ({
  tools: Object.fromEntries(tools.map((tool) => [String(tool.name), tool])),
  handle: () =>
    Effect.die(
      new Error("the model ran a tool handler inside an attempt, although `disableToolCallResolution` is set"),
    ),
});

// The methods have an overload for each type of toolkit, which is unknown here. These options are valid for all overloads.
const streamOf = (model: LanguageModel.LanguageModel, options: RequestOptions) =>
  (model.streamText as unknown as (options: RequestOptions) => Stream.Stream<Response.AnyPart, AiError.AiError>)(
    options,
  );

interface WholeResponse {
  readonly content: ReadonlyArray<Response.AnyPart>;
  readonly value?: unknown;
}
type Generate = (options: RequestOptions & Partial<ObjectRequest>) => Effect.Effect<WholeResponse, AiError.AiError>;

const wholeOf = (model: LanguageModel.LanguageModel, options: RequestOptions, call: Call) => {
  const { object } = call;
  // Cast for the same reason as in `streamOf`.
  const generate = (object === undefined ? model.generateText : model.generateObject) as unknown as Generate;
  return Effect.map(generate(object === undefined ? options : { ...options, ...object }), (response) => {
    call.value = response.value;
    return response.content;
  });
};

/**
 * Returns a tracker that decides once per call, outside the attempts, which messages the provider has already received. All attempts
 * therefore send the same request, and a failed attempt never counts as a response to continue from.
 */
const trackerOf = ({ incrementalPrompt, previousResponseId }: StepRequest): ResponseIdTracker.Service => ({
  clearUnsafe: () => undefined,
  markParts: () => undefined,
  prepareUnsafe: () =>
    incrementalPrompt === undefined || previousResponseId === undefined
      ? Option.none()
      : Option.some({ previousResponseId, prompt: incrementalPrompt }),
});
