/**
 * Gives the events of a recovered step to callers that can discard: parts come as they come, and so do calls.
 *
 * A call runs as soon as it is handed over, while the rest of the answer still streams, and a break after a call has settled
 * goes on from there: the next request holds what was kept of the answer, the results, and a word about every other call.
 */
import { Cause, Effect, FiberSet, Queue, Stream } from "effect";
import { type AiError, LanguageModel, Prompt, Response, type Tool, type Toolkit } from "effect/ai";
import { type PartEvent, type RunCompleted, type RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { type Base, unwrap } from "./Base.ts";
import { attemptOf, Call, type StepRequest } from "./Call.ts";
import type { AgentEvent, ToolSettled } from "./Event.ts";
import { errorIn, type Sent } from "./Parts.ts";
import { StopSignal } from "./StopSignal.ts";
import type { AnyToolkit, AnyTools } from "./Tools.ts";
import { Transcript } from "./Transcript.ts";

/** One step. */
export interface AgentOptions<Tools extends AnyTools>
  extends Pick<RunOptions<never, never, never>, "continueText" | "reveal" | "runId" | "signal"> {
  readonly prompt: Prompt.RawInput;
  /** The toolkit with its handlers (`yield* toolkit`). A tool that `needsApproval` is never run here: its call is denied. */
  readonly toolkit?: Toolkit.WithHandler<Tools>;
  readonly toolChoice?: LanguageModel.ToolChoice<string>;
}

/** Events that wait for the caller; calls and parts behind them wait too. */
const waitingMax = 16;

/**
 * Runs one step of the language model, recovered, with its calls.
 *
 * @param options the prompt and the toolkit
 * @returns events by the grammar of RunEvent.ts; `Transcript` folds them into a history. It fails with `RunInterrupted`, or
 *   with what a handler failed with.
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
      const { base, model } = unwrap(yield* LanguageModel.LanguageModel);
      const processor = yield* StreamProcessor;
      // Which tools they are is nothing that a step depends on.
      const given = options as unknown as AgentOptions<AnyTools>;
      const step = new Step(yield* ToolGuard, model, base, given, given.signal ?? (yield* StopSignal));
      return played(Stream.mapError(processor.run(step.run), withOriginal), step);
    }),
    // The handlers' errors and services are those of the toolkit that was given.
  ) as ReturnType<typeof run<Tools>>;

/** The same error with the provider's own as its cause, where a part carried it (law L12). */
const withOriginal = (interrupted: RunInterrupted): RunInterrupted => {
  const cause = errorIn(interrupted.cause);
  if (cause === interrupted.cause) return interrupted;
  const { attempts, failure, message, reason, rule, run_id } = interrupted;
  return new RunInterrupted({ attempts, failure, message, reason, rule, run_id, cause });
};

/** One step with what is known of it. */
class Step {
  readonly run: RunOptions<Sent, unknown, never>;
  readonly #call: Call;
  readonly #toolkit: AnyToolkit | undefined;
  readonly #transcript = new Transcript();

  constructor(
    guard: ToolGuard["Service"],
    model: LanguageModel.LanguageModel,
    base: Base,
    options: AgentOptions<AnyTools>,
    signal: AbortSignal | undefined,
  ) {
    const { continueText, prompt, reveal, runId, toolChoice = "auto", toolkit } = options;
    this.#call = new Call(guard, { resolves: true, signal });
    // Both are the toolkit that was given, whatever its tools.
    this.#toolkit = this.#call.guarded(toolkit) as AnyToolkit | undefined;
    const tools = Object.values(this.#toolkit?.tools ?? {});
    const request: StepRequest = { prompt: Prompt.make(prompt), tools, toolChoice };
    this.run = {
      ...base,
      ...this.#call.heeding,
      ...(continueText === undefined ? {} : { continueText }),
      ...(reveal === undefined ? {} : { reveal }),
      ...(runId === undefined ? {} : { runId }),
      canContinue: true,
      tools: this.#call.begin(tools),
      attempt: (attempt) => this.#attempt(model, request, attempt),
      observe: (sent) => sent.observation,
    };
  }

  /** The parts of an attempt are kept as they are decoded: what was handed over is read by the run alone. */
  #attempt(model: LanguageModel.LanguageModel, request: StepRequest, attempt: AttemptContext) {
    const transcript = this.#transcript;
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

  /** Runs the calls of a part and tells their results. */
  settle(
    sent: Sent,
    tell: (event: ToolSettled) => Effect.Effect<unknown>,
  ): ReadonlyArray<Effect.Effect<void, AiError.AiError>> {
    this.#call.handed(sent);
    return sent.given.flatMap((part) =>
      part.type === "tool-call" && part.providerExecuted !== true
        ? [
            Stream.runForEach(this.#results(part), (result) => {
              this.#transcript.settle(sent.attempt, result);
              return tell({ _tag: "ToolSettled", attempt: sent.attempt, part: result });
            }),
          ]
        : [],
    );
  }

  #results({ id, name, params }: Extract<Response.AnyPart, { readonly type: "tool-call" }>) {
    const tool = this.#toolkit?.tools[name];
    if (this.#toolkit === undefined || tool === undefined) return Stream.empty;
    if (tool.needsApproval !== undefined && tool.needsApproval !== false)
      return Stream.succeed(resultOf(id, name, { result: denied, encodedResult: denied, isFailure: true }));
    // The model's own parameters: the toolkit checks them. Its services are the caller's, by the type of `run`.
    const handled = Stream.unwrap(this.#toolkit.handle(name, params as never, id)) as Stream.Stream<
      Result,
      AiError.AiError
    >;
    return Stream.map(handled, (result) => resultOf(id, name, result));
  }
}

const denied = { type: "execution-denied", reason: "The tool needs an approval, which nobody can give here." } as const;

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

/** A continuation keeps an attempt through its last text or known call; what is open behind them is withdrawn. */
const keepThrough = (transcript: Transcript, { attempt, calls }: AttemptContext): void => {
  const before = attempt - 1;
  const known = new Set(calls.filter((call) => call.attempt === before).map((call) => call.id));
  const last = transcript
    .partsOf(before)
    .findLastIndex((part) => part.type === "text-delta" || (part.type === "tool-call" && known.has(part.id)));
  transcript.keep(before, last + 1);
};

/** Plays a run and its calls beside each other; the run completes when its last call has. */
const played = (events: Stream.Stream<RunEvent<Sent>, RunInterrupted>, step: Step) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.bounded<AgentEvent, unknown>(waitingMax);
      const fibers = yield* FiberSet.make<void, unknown>();
      let completed: RunCompleted | undefined;
      const take = (event: RunEvent<Sent>): Effect.Effect<unknown> => {
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

const partEvent = (event: PartEvent<Sent>): AgentEvent => {
  const { part, ...rest } = event;
  // A step's part is one part of a stream.
  const [given] = part.given;
  return { ...rest, part: given } as PartEvent<Response.AnyPart>;
};
