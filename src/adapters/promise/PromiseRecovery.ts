/**
 * Recovers model streams in programs without Effect: requests are async iterables, tools return promises, and a run is an async iterable of
 * events.
 *
 * The laws are those of `StreamProcessor.run`, which does all the work. This module only converts promises.
 */
import * as Cause from "effect/Cause";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as ManagedRuntime from "effect/ManagedRuntime";
import * as Schema from "effect/Schema";
import * as Stream from "effect/Stream";
import type { Choice } from "../../domain/Decision.ts";
import type { ToolBoundary, ToolEffect } from "../../domain/SideEffects.ts";
import { AnswerRefused, type Question } from "../../recorder/Question.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { fromAsyncIterable } from "../../runtime/attempt/AsyncSource.ts";
import type { RunEvent } from "../../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunBase, RunOptions, TextOptions } from "../../runtime/contract/RunOptions.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";
import { UserDecisions } from "../../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../runtime/tools/ToolGuard.ts";

export { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
export { ToolRefused } from "../../runtime/tools/ToolGuard.ts";
export { AnswerRefused };

/** The context of one attempt. */
export interface PromiseAttempt extends AttemptContext {
  /** Aborts when the attempt must end: its run was stopped, a clock fired, or its reader left. Pass it to your request. */
  readonly signal: AbortSignal;
}

/** Opens a request. An SDK's `create` returns such a promise. */
export type OpenParts<P> = (attempt: PromiseAttempt) => AsyncIterable<P> | PromiseLike<AsyncIterable<P>>;

/** Options of `recover`: those of `StreamProcessor.run`, with promises. */
export type PromiseRunOptions<P> = PromiseRunBase<P> & TextOptions<P>;

/** Options of `recover`, except those about continuing shown text. */
export interface PromiseRunBase<P>
  extends Omit<RunBase<P, unknown, never>, "attempt" | "canContinue" | "refreshCredentials"> {
  /** Opens an attempt. It must not retry by itself. */
  readonly attempt: OpenParts<P>;
  /** Opens a continuation, as in `RunOptions`. Without it, no attempt is continued. */
  readonly canContinue?: OpenParts<P>;
  /** Renews the credentials after the provider has rejected them (`rejected.auth`). Tried once per run. */
  readonly refreshCredentials?: () => PromiseLike<unknown>;
}

/** A run. Iterating over it sends the request, and it can be iterated over once. */
export interface PromiseRun<P> extends AsyncIterable<RunEvent<P>>, AsyncDisposable {
  /**
   * Answers the question of the last `QuestionAsked` event. Call it before you take the next event: if you do not, the question gets its
   * default, `stop`.
   *
   * @throws AnswerRefused if no question is open, or the question does not offer the choice
   */
  readonly answer: (choice: Choice) => void;
  /** Ends the run like a `break` out of its loop, and waits until it has ended. The user's Stop is the option `signal`. */
  readonly close: () => Promise<void>;
}

/** A tool whose handler starts at most once per call. */
export interface PromiseTool<I, A> extends ToolBoundary {
  readonly executor: "runtime";
  /** Runs the handler for a call of a `Part` event. Rejects with `ToolRefused` if the call may not start. */
  readonly run: (call: CallReference, input: I) => Promise<A>;
}

/** Optional abilities of a tool. */
export interface PromiseToolOptions {
  /** Reports whether a call of unknown outcome ran. It must change nothing. After `unknown`, a question is asked. */
  readonly verify?: (call: ToolGuard.UnknownCall) => PromiseLike<"it_ran" | "it_did_not_run" | "unknown">;
}

/** Options of a recovery. */
export interface PromiseRecoveryOptions {
  /**
   * Provides the store of the runs, for example `SqlRunRecorder.layerFile`. Default: runs are kept in memory. What else it provides, for
   * example a logger or a minimum log level, applies to all runs.
   */
  readonly recorder?: Layer.Layer<RunRecorder, unknown>;
}

/** Runs requests and guards tools, with its own services. */
export interface PromiseRecovery extends AsyncDisposable {
  /** Prepares one model request with its recoveries. It fails with `RunInterrupted`, whose `cause` is the provider's own error. */
  readonly recover: <P>(options: PromiseRunOptions<P>) => PromiseRun<P>;
  /**
   * Guards a tool. List the result in the `tools` of each request that offers it.
   *
   * @param name the tool's name, as the provider calls it
   * @param effect the worst that the tool can do
   * @param handler the work of one call; its signal aborts when the run is cancelled
   */
  readonly guardTool: <I, A>(
    name: string,
    effect: ToolEffect,
    handler: (input: I, context: { readonly signal: AbortSignal }) => A | PromiseLike<A>,
    options?: PromiseToolOptions,
  ) => PromiseTool<I, A>;
  /** Ends the live runs with rule `lifecycle_closed` and releases the store. Later runs fail. */
  readonly close: () => Promise<void>;
}

type Services = StreamProcessor | ToolGuard;

/** Creates a recovery. Its services start with the first run. */
export const createRecovery = (options: PromiseRecoveryOptions = {}): PromiseRecovery => {
  const answers = new Answers();
  const layer = StreamProcessor.layer.pipe(
    Layer.provide(Layer.succeed(UserDecisions, { ask: answers.ask })),
    Layer.provideMerge(options.recorder ?? RunRecorder.layerMemory()),
  );
  const runtime = ManagedRuntime.make(layer);
  const tools = new WeakMap<ToolBoundary, (guard: ToolGuard["Service"]) => ToolBoundary>();
  let started = false;
  const services = () => {
    started = true;
    return runtime.context();
  };
  const closeOnce = async () => {
    if (started)
      await runtime.runPromise(StreamProcessor.use((processor) => processor.close("the recovery is closed")));
    await runtime.dispose();
  };
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= closeOnce();
    return closing;
  };
  return {
    recover: (given) =>
      runOf(given.runId, answers, async () => {
        const context = await services();
        const guard = Context.get(context, ToolGuard);
        const guarded = given.tools.map((tool) => tools.get(tool)?.(guard) ?? tool);
        const events = Context.get(context, StreamProcessor).run(runOptions(given, guarded));
        return Stream.toAsyncIterableWith(events, context)[Symbol.asyncIterator]();
      }),
    guardTool: (name, effect, handler, toolOptions = {}) => {
      const { guardWith, tool } = toolOf(name, effect, handler, toolOptions, services);
      tools.set(tool, guardWith);
      return tool;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
};

const runOptions = <P>(
  { attempt, canContinue, refreshCredentials, ...options }: PromiseRunOptions<P>,
  tools: ReadonlyArray<ToolBoundary>,
): RunOptions<P, unknown, never> => ({
  ...options,
  tools,
  attempt: partsOf(attempt),
  ...(canContinue === undefined ? {} : { canContinue: partsOf(canContinue) }),
  ...(refreshCredentials === undefined ? {} : { refreshCredentials: fromPromise(() => refreshCredentials()) }),
});

/** A promise of the caller was rejected. `cause` is its error, unchanged. */
class Rejected extends Schema.TaggedError<Rejected>()("Rejected", { cause: Schema.Unknown }) {}

const fromPromise = <A>(open: (signal: AbortSignal) => A | PromiseLike<A>): Effect.Effect<A, Rejected> =>
  Effect.tryPromise({
    try: (signal) => new Promise<A>((resolve) => resolve(open(signal))),
    catch: (cause) => new Rejected({ cause }),
  });

const partsOf =
  <P>(open: OpenParts<P>) =>
  (attempt: AttemptContext): Stream.Stream<P, unknown> =>
    fromAsyncIterable(
      () => ({ [Symbol.asyncIterator]: () => openLater((signal) => open({ ...attempt, signal })) }),
      (error) => error,
    );

/** Opens a source with the first read. Its signal aborts if the reader leaves before the end. */
const openLater = <P>(
  open: (signal: AbortSignal) => AsyncIterable<P> | PromiseLike<AsyncIterable<P>>,
): AsyncIterator<P> => {
  const controller = new AbortController();
  const end = { done: true, value: undefined } as const;
  let source: AsyncIterator<P> | undefined;
  return {
    next: async () => {
      source ??= (await open(controller.signal))[Symbol.asyncIterator]();
      // A source that ignores its signal may open after its reader has left.
      if (!controller.signal.aborted) return source.next();
      await source.return?.();
      return end;
    },
    return: async () => {
      controller.abort();
      await source?.return?.();
      return end;
    },
  };
};

/** Makes a run of its events, which are opened with the first read. */
const runOf = <P>(
  runId: string | undefined,
  answers: Answers,
  open: () => Promise<AsyncIterator<RunEvent<P>>>,
): PromiseRun<P> => {
  let id = runId ?? "";
  let question: Question | undefined;
  let events: Promise<AsyncIterator<RunEvent<P>>> | undefined;
  let closing: Promise<void> | undefined;
  let isRead = false;
  const give = (choice: Choice) => {
    if (question !== undefined) answers.give(question, choice);
    question = undefined;
  };
  const answer = (choice: Choice) => {
    if (question?.choices.includes(choice) === true) return give(choice);
    const words =
      question === undefined ? "no question is open" : `expected one of ${question.choices.join(", ")}, got ${choice}`;
    const reason = question === undefined ? "no_question" : "not_offered";
    throw new AnswerRefused({ reason, run_id: id, message: `${id}: ${words}` });
  };
  const close = () => {
    closing ??= (async () => {
      answers.forget(id);
      await (await events)?.return?.();
    })();
    return closing;
  };
  const next = async (): Promise<IteratorResult<RunEvent<P>>> => {
    if (question !== undefined) give(question.default_choice);
    if (events === undefined && closing !== undefined) return { done: true, value: undefined };
    events ??= open();
    const found = await (await events).next();
    if (found.done === true) return found;
    if (found.value._tag === "AttemptStarted") id = found.value.run_id;
    if (found.value._tag === "QuestionAsked") question = found.value.question;
    return found;
  };
  const leave = async (): Promise<IteratorResult<RunEvent<P>>> => {
    await close();
    return { done: true, value: undefined };
  };
  return {
    answer,
    close,
    [Symbol.asyncDispose]: close,
    [Symbol.asyncIterator]: () => {
      if (isRead) throw new Error("a run can be iterated over once: it is one request");
      isRead = true;
      return { next, return: leave };
    },
  };
};

/** The answers that code gives to the open questions of all runs. */
class Answers {
  readonly #given = new Map<string, { readonly revision: number; readonly choice: Deferred.Deferred<Choice> }>();

  /** Waits for the answer to a question, which may have been given already. */
  readonly ask = (question: Question): Effect.Effect<Choice> =>
    Effect.suspend(() => Deferred.await(this.#answerOf(question))).pipe(
      Effect.ensuring(Effect.sync(() => this.forget(question.run_id))),
    );

  give(question: Question, choice: Choice): void {
    Deferred.doneUnsafe(this.#answerOf(question), Effect.succeed(choice));
  }

  forget(runId: string): void {
    this.#given.delete(runId);
  }

  #answerOf({ revision, run_id }: Question): Deferred.Deferred<Choice> {
    const known = this.#given.get(run_id);
    if (known?.revision === revision) return known.choice;
    const choice = Deferred.makeUnsafe<Choice>();
    this.#given.set(run_id, { revision, choice });
    return choice;
  }
}

/** Makes a tool, and the function that makes its guarded counterpart, which the runs list. */
const toolOf = <I, A>(
  name: string,
  effect: ToolEffect,
  handler: (input: I, context: { readonly signal: AbortSignal }) => A | PromiseLike<A>,
  { verify }: PromiseToolOptions,
  services: () => Promise<Context.Context<Services>>,
) => {
  let made: GuardedTool<I, A, Rejected, never> | undefined;
  const guardWith = (guard: ToolGuard["Service"]): GuardedTool<I, A, Rejected, never> => {
    made ??= guard.ofEffect(effect)(
      name,
      (input: I) => fromPromise((signal) => handler(input, { signal })),
      verify === undefined ? {} : { verify: (call) => fromPromise(() => verify(call)) },
    );
    return made;
  };
  const tool: PromiseTool<I, A> = Object.freeze({
    name,
    effect,
    executor: "runtime" as const,
    run: async (call: CallReference, input: I) => {
      const context = await services();
      const guarded = guardWith(Context.get(context, ToolGuard));
      const exit = await Effect.runPromiseExitWith(context)(guarded.run(call, input));
      if (Exit.isSuccess(exit)) return exit.value;
      const error = Cause.squash(exit.cause);
      throw error instanceof Rejected ? error.cause : error;
    },
  });
  return { guardWith, tool };
};
