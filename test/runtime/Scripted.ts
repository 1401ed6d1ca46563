/**
 * Plays the provider in tests: every attempt is a list of steps, and what a caller saw is compared as a whole.
 */
import { Context, Effect, Exit, Fiber, Layer, Random, Ref, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import * as Observation from "../../src/domain/Observation.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import type { Question } from "../../src/recorder/Question.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext, RunBase, RunOptions, TextOptions } from "../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";

/** A part of the scripted provider: a name for the transcript and what it proves. */
export interface ScriptedPart {
  readonly name: string;
  readonly says: Observation.Observation;
}

/** The error of a scripted provider, which must reach the caller unchanged (law L12). */
export class ProviderBroke {
  readonly _tag = "ProviderBroke";
  readonly failure: Failure;
  constructor(failure: Failure) {
    this.failure = failure;
  }
}

export type Step =
  | { readonly part: ScriptedPart }
  | { readonly parts: ReadonlyArray<ScriptedPart> }
  | { readonly wait: number }
  | { readonly run: Effect.Effect<unknown> }
  | { readonly fail: Failure }
  | { readonly die: unknown }
  | { readonly interrupt: true }
  | { readonly never: true }
  | { readonly finalizer: Effect.Effect<unknown> };

export const part = (name: string, says: Observation.Observation): Step => ({ part: { name, says } });

export const start = part("start", Observation.lifecycle);
export const ping = part("ping", Observation.ping);
export const text = (it: string): Step => part(it, Observation.text(it.length));
export const reasoning = (it: string): Step => part(`(${it})`, Observation.reasoning(it.length));
export const done = part("done", Observation.terminal("stop"));
/** A whole response. */
/** A report of tokens. */
export const usage = (input_tokens: number, output_tokens: number): Step =>
  part("usage", { ...Observation.lifecycle, usage: { input_tokens, output_tokens } });

export const hello: ReadonlyArray<Step> = [start, text("hello"), done];

export const together = (...steps: ReadonlyArray<Step>): Step => ({
  parts: steps.flatMap((step) => ("part" in step ? [step.part] : [])),
});
export const wait = (ms: number): Step => ({ wait: ms });
export const fail = (failure: Failure): Step => ({ fail: failure });
export const reset: Step = fail({ kind: "transport", code: "ECONNRESET" });
export const never: Step = { never: true };
export const errorEvent = (failure: Failure): Step => part("error", Observation.failed(failure));

const signal = (
  phase: Observation.CallSignal["phase"],
  ordinal: number,
  tool: string,
  id: string,
  executor: "runtime" | "provider",
): Step =>
  part(`${tool}:${phase}`, Observation.calls([{ choice: 0, ordinal, id, tool, executor, phase, input: "{}" }]));

export const callStarts = (tool: string, ordinal = 0, id = `id${ordinal}`) =>
  signal("input_started", ordinal, tool, id, "runtime");
export const callComplete = (tool: string, ordinal = 0, id = `id${ordinal}`) =>
  signal("input_complete", ordinal, tool, id, "runtime");
export const callReady = (tool: string, ordinal = 0, id = `id${ordinal}`) =>
  signal("ready", ordinal, tool, id, "runtime");
export const providerCall = (tool: string, ordinal = 0) =>
  signal("input_started", ordinal, tool, `p${ordinal}`, "provider");

/** The scripted provider of one run: attempt n plays script n, and one too many fails the test by name. */
export const scripted = (...scripts: ReadonlyArray<ReadonlyArray<Step>>) => {
  const attempts: Array<AttemptContext> = [];
  const attempt = (context: AttemptContext): Stream.Stream<ScriptedPart, ProviderBroke> => {
    attempts.push(context);
    const script = scripts[attempts.length - 1];
    if (script === undefined) return Stream.die(new Error(`attempt ${attempts.length} is not in the script`));
    return Stream.fromIterable(script).pipe(Stream.flatMap(play));
  };
  return { attempt, attempts };
};

const play = (step: Step): Stream.Stream<ScriptedPart, ProviderBroke> => {
  if ("part" in step) return Stream.make(step.part);
  if ("parts" in step) return Stream.fromArray([...step.parts]);
  if ("wait" in step) return Stream.drain(Stream.fromEffect(Effect.sleep(step.wait)));
  if ("run" in step) return Stream.drain(Stream.fromEffect(step.run));
  if ("fail" in step) return Stream.fail(new ProviderBroke(step.fail));
  if ("die" in step) return Stream.die(step.die);
  if ("interrupt" in step) return Stream.fromEffect(Effect.interrupt);
  if ("finalizer" in step) return Stream.drain(Stream.fromEffect(Effect.never)).pipe(Stream.ensuring(step.finalizer));
  return Stream.never;
};

export const options = (
  provider: { readonly attempt: (context: AttemptContext) => Stream.Stream<ScriptedPart, ProviderBroke> },
  { canContinue, ...more }: More = {},
): RunOptions<ScriptedPart, ProviderBroke, never> =>
  // Tests also give `continueText` without a seam, as plain JavaScript may.
  ({
    provider: { id: "scripted", reasoning: false },
    tools: [],
    attempt: provider.attempt,
    observe: (it) => it.says,
    classify: (error) => error.failure,
    ...(canContinue === true ? { canContinue: provider.attempt } : {}),
    ...more,
  }) as RunOptions<ScriptedPart, ProviderBroke, never>;

/** More options of a scripted run. With `canContinue` the scripts open the continuations too. */
export interface More extends Partial<Omit<RunBase<ScriptedPart, ProviderBroke, never>, "canContinue">> {
  readonly canContinue?: boolean;
  readonly continueText?: "ask" | "auto";
  readonly seam?: TextOptions<ScriptedPart>["seam"] & {};
}

/** A transcript line of one event: what a person would read. */
export const line = (event: RunEvent<ScriptedPart>): string => {
  switch (event._tag) {
    case "AttemptStarted":
      return `attempt ${event.attempt} ${event.mode}`;
    case "Part":
      return event.part.name;
    case "CallVerified":
      return `verified ${event.attempt}/${event.call} ${event.verdict}`;
    case "Continued":
      return `continued ${event.attempt} at ${event.at} by ${event.proof}`;
    case "AttemptDiscarded":
      return `discard ${event.attempt} after ${event.keep_through}`;
    case "RetryScheduled":
      return `retry ${event.mode} ${event.rule}`;
    case "Waiting":
      return `wait ${event.for}`;
    case "QuestionAsked":
      return `ask ${event.question.rule}`;
    case "QuestionAnswered":
      return `answer ${event.choice}`;
    case "RunCompleted":
      return "completed";
  }
};

export interface Seen {
  readonly lines: ReadonlyArray<string>;
  readonly events: ReadonlyArray<RunEvent<ScriptedPart>>;
  readonly exit: Exit.Exit<void, RunInterrupted>;
}

/** Runs to the end under TestClock and gives the transcript. `onEvent` runs for each event before the next is pulled. */
export const watch = <R>(
  stream: Stream.Stream<RunEvent<ScriptedPart>, RunInterrupted, R>,
  onEvent: (event: RunEvent<ScriptedPart>) => Effect.Effect<unknown, unknown> = () => Effect.void,
): Effect.Effect<Seen, never, R> =>
  Effect.gen(function* () {
    const events: Array<RunEvent<ScriptedPart>> = [];
    const exit = yield* Effect.exit(
      Stream.runForEach(stream, (event) => {
        events.push(event);
        return Effect.orDie(onEvent(event));
      }),
    );
    return { lines: [...events.map(line), ...endLine(exit)], events, exit };
  });

const endLine = (exit: Exit.Exit<void, RunInterrupted>): ReadonlyArray<string> => {
  const error = errorOf(exit);
  return error === undefined ? (Exit.isSuccess(exit) ? [] : ["interrupted"]) : [`end ${error.reason} ${error.rule}`];
};

export const errorOf = <A, E>(exit: Exit.Exit<A, E>): E | undefined => {
  if (Exit.isSuccess(exit)) return undefined;
  for (const reason of exit.cause.reasons) if (reason._tag === "Fail") return reason.error;
  return undefined;
};

/** Forks the run and lets the virtual clock run, ten minutes at a time, until it has ended: at most ten virtual hours. */
export const played = <R>(
  stream: Stream.Stream<RunEvent<ScriptedPart>, RunInterrupted, R>,
  onEvent?: (event: RunEvent<ScriptedPart>) => Effect.Effect<unknown, unknown>,
): Effect.Effect<Seen, never, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(watch(stream, onEvent));
    // Immediate effects run before any time passes: a first attempt may break and wait in its very first step.
    for (let step = 0; step < 8; step += 1) yield* TestClock.adjust(0);
    for (let step = 0; step === 0 || (step < 60 && fiber.pollUnsafe() === undefined); step += 1)
      yield* TestClock.adjust("10 minutes");
    return yield* Fiber.join(fiber);
  });

/** A processor over a recorder; by default without a person to ask. */
export const servicesOver = (recorder: RunRecorder["Service"], decisions = UserDecisions.layerHeadless()) =>
  Layer.build(
    StreamProcessor.layer.pipe(Layer.provide(Layer.succeed(RunRecorder, recorder)), Layer.provide(decisions)),
  );

/** The processor of a test: jitter 0.5, answers by script (the last repeats), a recorder in memory. */
export const processor = (answers: ReadonlyArray<Choice> = ["stop"]) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), answering(answers))),
    Layer.provideMerge(Layer.succeed(Random.Random, halfway)),
  );

const halfway = {
  nextDoubleUnsafe: () => 0.5,
  nextIntUnsafe: () => 0,
};

export class Asked extends Context.Service<Asked, Ref.Ref<ReadonlyArray<Question>>>()("test/Asked") {}

const answering = (answers: ReadonlyArray<Choice>) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const asked = yield* Ref.make<ReadonlyArray<Question>>([]);
      const ask = (question: Question) =>
        Ref.modify(asked, (before) => [
          answers[Math.min(before.length, answers.length - 1)] ?? "stop",
          [...before, question],
        ]);
      return Context.make(UserDecisions, { ask }).pipe(Context.add(Asked, asked));
    }),
  );

export const recordOf = (runId: string): Effect.Effect<RunRecord, never, RunRecorder> =>
  Effect.gen(function* () {
    const record = yield* Effect.orDie((yield* RunRecorder).run(runId));
    return record ?? (yield* Effect.die(new Error(`no record of ${runId}`)));
  });

/** A recorder in memory, some of whose methods are others. */
export const recorderThat = (methods: Partial<RunRecorder["Service"]>): Layer.Layer<RunRecorder> =>
  Layer.effect(
    RunRecorder,
    Effect.map(RunRecorder, (recorder) => ({ ...recorder, ...methods })),
  ).pipe(Layer.provide(RunRecorder.layerMemory()));

/** The stream of an effect that gives one. */
export const flat = <A, E, R, R2>(
  effect: Effect.Effect<Stream.Stream<A, E, R>, never, R2>,
): Stream.Stream<A, E, R | R2> => Stream.unwrap(effect);

/** A policy with other parts than `make` gives one: plain JavaScript can pass such an object. */
export const policyOf = (parts: Partial<Pick<RecoveryPolicy.RecoveryPolicy, "name" | "decide">>) =>
  // The types refuse it on purpose.
  ({ ...RecoveryPolicy.default, ...parts }) as RecoveryPolicy.RecoveryPolicy;
