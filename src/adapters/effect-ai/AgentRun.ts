/**
 * Emits the events of a recovered step for callers that can discard. Parts and calls are delivered as they arrive.
 *
 * A call runs as soon as it is delivered, while the rest of the response is still streamed. If the response breaks after a call has
 * settled, the run continues from there: the next request contains the parts of the response that are kept, the results, and a sentence
 * about every other call.
 */
import { Cause, Effect, FiberSet, Queue, Stream } from "effect";
import { type AiError, LanguageModel, Prompt, Response, type Tool, type Toolkit } from "effect/ai";
import * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import { type PartEvent, type RunCompleted, type RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import * as Seam from "../../stages/seam/Seam.ts";
import { attemptOf, Call, type StepRequest } from "./Call.ts";
import { type RecoveryBase, recoveredModel } from "./Model.ts";
import { errorIn, type ReadPart } from "./Parts.ts";
import * as ReadSeam from "./ReadSeam.ts";
import { StopSignal } from "./StopSignal.ts";
import type { AnyToolkit, AnyTools } from "./Tools.ts";
import { type AgentEvent, type ToolSettled, Transcript } from "./Transcript.ts";

/** Options of one step: the prompt, the tools, and options of its run. */
export interface AgentOptions<Tools extends AnyTools>
  extends Pick<RunOptions<never, never, never>, "continueText" | "reveal" | "runId" | "signal"> {
  readonly prompt: Prompt.RawInput;
  /** The toolkit with its handlers (`yield* toolkit`). A call of a tool that `needsApproval` is denied here and does not run. */
  readonly toolkit?: Toolkit.WithHandler<Tools>;
  readonly toolChoice?: LanguageModel.ToolChoice<string>;
}

/** Maximum number of events that wait for the caller. If it is reached, the run and its calls wait too. */
const waitingMax = 16;

/**
 * Runs one step of the language model, with its tool calls, and recovers it if it breaks.
 *
 * @param options the prompt and the toolkit
 * @returns events in the order that RunEvent.ts defines, from which `Transcript` builds a history; fails with `RunInterrupted`, or with the
 *   error of a handler
 */
export const run = <Tools extends AnyTools = Record<never, never>>(
  options: AgentOptions<Tools>,
): Stream.Stream<
  AgentEvent,
  RunInterrupted | AiError.AiError | Tool.HandlerError<Tools[keyof Tools]>,
  LanguageModel.LanguageModel | StreamProcessor | ToolGuard | Tool.HandlerServices<Tools[keyof Tools]>
> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { base, model } = recoveredModel(yield* LanguageModel.LanguageModel);
      const processor = yield* StreamProcessor;
      // The step does not depend on the types of the tools, so the cast is safe.
      const given = options as unknown as AgentOptions<AnyTools>;
      const step = new AgentStep(yield* ToolGuard, model, base, given, given.signal ?? (yield* StopSignal));
      return play(Stream.mapError(processor.run(step.run), withOriginal), step);
    }),
    // The handlers' errors and services are those of the caller's toolkit, so the cast is safe.
  ) as ReturnType<typeof run<Tools>>;

/** Replaces the cause with the provider's own error, if the part in the cause contains one (L12). */
const withOriginal = (interrupted: RunInterrupted): RunInterrupted => {
  const cause = errorIn(interrupted.cause);
  if (cause === interrupted.cause) return interrupted;
  const { attempts, failure, message, reason, route, rule, run_id } = interrupted;
  const by = route === undefined ? {} : { route };
  return new RunInterrupted({ attempts, failure, message, reason, rule, run_id, ...by, cause });
};

class AgentStep {
  readonly run: RunOptions<ReadPart, unknown, never>;
  readonly #call: Call;
  readonly #toolkit: AnyToolkit | undefined;
  readonly #transcript = new Transcript();
  /** Attempts that continue shown text. Their transcripts consist of delivered parts instead of decoded ones. */
  readonly #seams = new Set<number>();
  /** The parts that were delivered to the caller. */
  readonly #left = new WeakSet<Response.AnyPart>();

  constructor(
    guard: ToolGuard["Service"],
    model: LanguageModel.LanguageModel,
    base: RecoveryBase,
    options: AgentOptions<AnyTools>,
    signal: AbortSignal | undefined,
  ) {
    const { continueText, prompt, reveal, runId, toolChoice = "auto", toolkit } = options;
    this.#call = new Call(guard, { resolves: true, signal });
    // `withGuard` returns a toolkit with the same tools, so the cast is safe.
    this.#toolkit = this.#call.withGuard(toolkit) as AnyToolkit | undefined;
    const tools = Object.values(this.#toolkit?.tools ?? {});
    const request: StepRequest = { prompt: Prompt.make(prompt), tools, toolChoice };
    const attempt = (context: AttemptContext) => this.#attempt(model, request, context);
    this.run = {
      ...base,
      ...this.#call.signalOption,
      ...(continueText === undefined ? {} : { continueText }),
      ...(reveal === undefined ? {} : { reveal }),
      ...(runId === undefined ? {} : { runId }),
      canContinue: attempt,
      seam: Seam.of(() => ReadSeam.make({ toolChoice, onPartDelivered: (sent) => this.#hasLeft(sent) })),
      tools: this.#call.begin(tools),
      attempt,
      observe: (sent) => sent.observation,
    };
  }

  /**
   * Opens an attempt that adds parts to the transcript as they are decoded. Before the next attempt, the run decides which of them are
   * kept.
   */
  #attempt(model: LanguageModel.LanguageModel, request: StepRequest, attempt: AttemptContext) {
    const transcript = this.#transcript;
    if (attempt.seam !== undefined) return this.#continueText(model, request, attempt, attempt.seam);
    if (attempt.mode === "continue") keepThrough(transcript, attempt);
    else if (attempt.attempt > 1) transcript.keep(attempt.attempt - 1, 0);
    if (attempt.request === "first") for (let at = 1; at < attempt.attempt; at += 1) transcript.keep(at, 0);
    const prompt =
      attempt.request === "continue" ? Prompt.concat(request.prompt, transcript.prompt(attempt.calls)) : request.prompt;
    return attemptOf(model, { ...request, prompt })(attempt).pipe(
      Stream.tap((sent) =>
        Effect.sync(() => {
          for (const part of sent.given) transcript.add(attempt.attempt, part);
        }),
      ),
    );
  }

  /** Requests the continuation of shown text. Parts that the previous attempt decoded but did not show are generated again. */
  #continueText(
    model: LanguageModel.LanguageModel,
    request: StepRequest,
    attempt: AttemptContext,
    { quote }: SeamPlan,
  ) {
    const transcript = this.#transcript;
    this.#seams.add(attempt.attempt);
    transcript.join(attempt.attempt);
    transcript.keepLeft(attempt.attempt - 1, this.#left);
    const asked = Prompt.make([{ role: "user", content: [{ type: "text", text: Continuation.seamWords(quote) }] }]);
    const prompt = Prompt.concat(Prompt.concat(request.prompt, transcript.prompt(attempt.calls)), asked);
    return attemptOf(model, { ...request, prompt })(attempt);
  }

  #hasLeft(sent: ReadPart): void {
    for (const part of sent.given) {
      this.#left.add(part);
      if (this.#seams.has(sent.attempt)) this.#transcript.add(sent.attempt, part);
    }
  }

  /** Runs the calls in a part and reports their results. */
  settle(
    sent: ReadPart,
    report: (event: ToolSettled) => Effect.Effect<unknown>,
  ): ReadonlyArray<Effect.Effect<void, AiError.AiError>> {
    this.#call.registerCalls(sent);
    return sent.given.flatMap((part) =>
      part.type === "tool-call" && part.providerExecuted !== true
        ? [
            Stream.runForEach(this.#runTool(part), (result) => {
              this.#transcript.settle(sent.attempt, result);
              return report({ _tag: "ToolSettled", attempt: sent.attempt, part: result });
            }),
          ]
        : [],
    );
  }

  #runTool({ id, name, params }: Extract<Response.AnyPart, { readonly type: "tool-call" }>) {
    const tool = this.#toolkit === undefined ? undefined : Json.own(this.#toolkit.tools, name);
    if (this.#toolkit === undefined || tool === undefined) return Stream.empty;
    if (tool.needsApproval !== undefined && tool.needsApproval !== false)
      return Stream.succeed(resultOf(id, name, { result: denied, encodedResult: denied, isFailure: true }));
    // The toolkit validates the model's parameters. The services it needs are in the type of `run`, so the casts are safe.
    const handled = Stream.unwrap(this.#toolkit.handle(name, params as never, id)) as Stream.Stream<
      Result,
      AiError.AiError
    >;
    return Stream.map(handled, (result) => resultOf(id, name, result));
  }
}

const denied = {
  type: "execution-denied",
  reason: "The tool needs an approval, and this run has no way to ask for one.",
} as const;

interface Result {
  readonly result: unknown;
  readonly encodedResult: unknown;
  readonly isFailure: boolean;
  readonly preliminary?: boolean;
  readonly modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart> | undefined;
}

const resultOf = (id: string, name: string, given: Result): ToolSettled["part"] =>
  Response.toolResultPart({
    id,
    name,
    providerExecuted: false,
    preliminary: given.preliminary ?? false,
    result: given.result,
    encodedResult: given.encodedResult,
    isFailure: given.isFailure,
    ...(given.modelOutput === undefined ? {} : { modelOutput: given.modelOutput }),
  });

/** Keeps the parts of an attempt up to its last text or known call. Parts after that are withdrawn. */
const keepThrough = (transcript: Transcript, { attempt, calls }: AttemptContext): void => {
  const before = attempt - 1;
  const known = new Set(calls.filter((call) => call.attempt === before).map((call) => call.id));
  const last = transcript
    .partsOf(before)
    .findLastIndex((part) => part.type === "text-delta" || (part.type === "tool-call" && known.has(part.id)));
  transcript.keep(before, last + 1);
};

/** Runs the events and the calls of a step concurrently. The run completes when the last call has settled. */
const play = (events: Stream.Stream<RunEvent<ReadPart>, RunInterrupted>, step: AgentStep) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.bounded<AgentEvent, unknown>(waitingMax);
      const fibers = yield* FiberSet.make<void, unknown>();
      let completed: RunCompleted | undefined;
      const take = (event: RunEvent<ReadPart>): Effect.Effect<unknown> => {
        if (event._tag === "RunCompleted") {
          completed = event;
          return Effect.void;
        }
        if (event._tag !== "Part") return Queue.offer(queue, event);
        const calls = step.settle(event.part, (settled) => Queue.offer(queue, settled));
        return Effect.andThen(
          Queue.offer(queue, partEvent(event)),
          Effect.forEach(calls, (call) => FiberSet.run(fibers, call), { discard: true }),
        );
      };
      yield* Stream.runForEach(events, take).pipe(
        Effect.andThen(Effect.raceFirst(FiberSet.join(fibers), FiberSet.awaitEmpty(fibers))),
        Effect.andThen(Effect.suspend(() => (completed === undefined ? Effect.void : Queue.offer(queue, completed)))),
        Effect.matchCauseEffect({
          onFailure: (cause) => Queue.failCause(queue, cause),
          onSuccess: () => Queue.failCause(queue, Cause.fail(Cause.Done())),
        }),
        Effect.forkScoped,
      );
      return Stream.fromQueue(queue);
    }),
  );

const partEvent = (event: PartEvent<ReadPart>): AgentEvent => {
  const { part, ...rest } = event;
  // A ReadPart of a stream contains exactly one part, so the cast is safe.
  const [given] = part.given;
  return { ...rest, part: given } as PartEvent<Response.AnyPart>;
};
