/**
 * Plays a provider by script under the test's clock: attempt n plays script n, and waits take no real time.
 *
 * ```ts
 * it.effect("shows nothing twice", () =>
 *   Effect.gen(function* () {
 *     const provider = ScriptedProvider.make([Step.start, Step.text("hel"), Step.reset], [Step.text("hello"), Step.done])
 *     const processor = yield* StreamProcessor
 *     const seen = yield* ScriptedProvider.play(processor.run(provider.options()))
 *     assert.deepStrictEqual(checkGrammar(seen.events, seen.exit), [])
 *   }).pipe(Effect.provide(StreamProcessor.layerDefault)),
 * )
 * ```
 */
import { Context, type Duration, Effect, type Exit, Fiber, Layer, Schema, Stream } from "effect";
import { TestClock } from "effect/testing";
import { Failure } from "../domain/Failure.ts";
import type { RunEvent, RunInterrupted } from "../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunBase, RunOptions, TextOptions } from "../runtime/contract/RunOptions.ts";
import { transcript } from "./Matchers.ts";
import type { ScriptedPart, ScriptedStep } from "./ScriptedStep.ts";

/** The original error of a scripted provider, with the failure that it is classified as. */
export class ProviderBroke extends Schema.TaggedError<ProviderBroke>()("ProviderBroke", {
  reason: Schema.Literal("scripted"),
  failure: Failure,
}) {}

/** The outcome of a scripted run. */
export interface ScriptedRun<E = RunInterrupted> {
  readonly events: ReadonlyArray<RunEvent<ScriptedPart>>;
  /** The events in readable form, then the end. */
  readonly lines: ReadonlyArray<string>;
  readonly exit: Exit.Exit<void, E>;
}

/** Default virtual time of a scripted run. It exceeds every default clock and budget. */
const playedFor: Duration.Input = "10 hours";

type Options = RunOptions<ScriptedPart, ProviderBroke, never>;

/** The scripted provider of one run. */
export class ScriptedProvider extends Context.Service<
  ScriptedProvider,
  {
    /** Opens an attempt. An attempt without a script dies with a defect that names it. */
    readonly attempt: (context: AttemptContext) => Stream.Stream<ScriptedPart, ProviderBroke>;
    /** Returns options for `StreamProcessor.run`. Options that are given replace the defaults. */
    readonly options: (
      more?: Partial<RunBase<ScriptedPart, ProviderBroke, never>> & TextOptions<ScriptedPart>,
    ) => Options;
    /** Contexts of the attempts opened so far. */
    readonly attempts: ReadonlyArray<AttemptContext>;
  }
>()("effect-stream-recovery/testing/ScriptedProvider") {
  /**
   * Creates a provider for one run.
   *
   * @param scripts the steps of attempt 1, 2, …; a script that ends without `Step.done` ends cleanly and too early
   */
  static readonly make = (...scripts: ReadonlyArray<ReadonlyArray<ScriptedStep>>): ScriptedProvider["Service"] =>
    make(scripts);

  /** Provides `make` as a layer, for programs that take the provider from their context. */
  static readonly layer = (...scripts: ReadonlyArray<ReadonlyArray<ScriptedStep>>): Layer.Layer<ScriptedProvider> =>
    Layer.sync(ScriptedProvider, () => make(scripts));

  /**
   * Runs a stream of events to its end while the test clock advances. Needs `TestClock`, which `it.effect` provides.
   *
   * @param events the stream from `StreamProcessor.run`
   * @param options `onEvent` runs for each event before the next is pulled; `for` is the time by which the clock advances
   */
  static readonly play = <E, R>(
    events: Stream.Stream<RunEvent<ScriptedPart>, E, R>,
    options: {
      readonly onEvent?: (event: RunEvent<ScriptedPart>) => Effect.Effect<unknown>;
      readonly for?: Duration.Input;
    } = {},
  ): Effect.Effect<ScriptedRun<E>, never, R> =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(watch(events, options.onEvent ?? (() => Effect.void)));
      yield* TestClock.adjust(options.for ?? playedFor);
      return yield* Fiber.join(fiber);
    });
}

const make = (scripts: ReadonlyArray<ReadonlyArray<ScriptedStep>>): ScriptedProvider["Service"] => {
  const attempts: Array<AttemptContext> = [];
  const attempt = (context: AttemptContext) =>
    Stream.suspend(() => {
      attempts.push(context);
      const script = scripts[attempts.length - 1];
      return script === undefined
        ? Stream.die(new Error(`attempt ${attempts.length} is not in the script`))
        : Stream.fromIterable(script).pipe(Stream.flatMap(playStep));
    });
  return {
    attempt,
    attempts,
    options: (more = {}) => ({
      provider: { id: "scripted", reasoning: false },
      tools: [],
      attempt,
      observe: (part) => part.says,
      classify: (error) => error.failure,
      ...more,
    }),
  };
};

const playStep = (step: ScriptedStep): Stream.Stream<ScriptedPart, ProviderBroke> => {
  switch (step.do) {
    case "part":
      return Stream.make(step.part);
    case "together":
      return Stream.fromArray([...step.parts]);
    case "wait":
      return Stream.drain(Stream.fromEffect(Effect.sleep(step.duration)));
    case "run":
      return Stream.drain(Stream.fromEffect(step.effect));
    case "fail":
      return Stream.fail(new ProviderBroke({ reason: "scripted", failure: step.failure }));
    case "die":
      return Stream.die(step.defect);
    case "stall":
      return Stream.never;
  }
};

const watch = <E, R>(
  stream: Stream.Stream<RunEvent<ScriptedPart>, E, R>,
  onEvent: (event: RunEvent<ScriptedPart>) => Effect.Effect<unknown>,
): Effect.Effect<ScriptedRun<E>, never, R> =>
  Effect.gen(function* () {
    const events: Array<RunEvent<ScriptedPart>> = [];
    const exit = yield* Effect.exit(
      Stream.runForEach(stream, (event) => {
        events.push(event);
        return onEvent(event);
      }),
    );
    return { events, exit, lines: transcript(events, ({ name }) => name, exit) };
  });
