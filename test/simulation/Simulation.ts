/**
 * Plays a scenario under virtual time and gives its trace. It judges nothing.
 */
import { Clock, Context, Effect, Exit, type Fiber, Layer, Logger, Random, Scope, Stream } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { RecorderError, RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../src/runtime/InterruptSignature.ts";
import type { RunOptions } from "../../src/runtime/RunOptions.ts";
import { ProcessorConfig, StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/ToolGuard.ts";
import { UserDecisions } from "../../src/runtime/UserDecisions.ts";
import { Dice } from "./Dice.ts";
import { ConsumerBroke, Journal, type Part, type Trace } from "./Journal.ts";
import { policyOf } from "./Policies.ts";
import { cursorOf, type ProviderBroke, provider } from "./Provider.ts";
import { type Moment, mayHang, type Outside, type Scenario } from "./Scenario.ts";
import { runId, Tools } from "./Tools.ts";
import { pass, pause, layer as virtualTime } from "./VirtualTime.ts";

/** Virtual hours within which every run ends by itself, unless somebody waits for ever by design. */
export const hoursMax = 12;

/** Virtual milliseconds before the run starts: TestClock waits for what it has woken, and for nothing else. */
const startMs = 1;

/** Plays a scenario. */
export const simulate = (scenario: Scenario): Promise<Trace> =>
  Effect.runPromise(Effect.provide(play(scenario), Layer.merge(virtualTime, Logger.layer([]))));

const play = (scenario: Scenario): Effect.Effect<Trace> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const journal = new Journal(() => clock.currentTimeMillisUnsafe() - startMs);
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(layerOf(scenario, journal), scope);
    const processor = Context.get(context, StreamProcessor);
    const tools = new Tools(scenario, journal, Context.get(context, ToolGuard));
    const consumer = Effect.andThen(pause(startMs), consume(scenario, journal, processor, tools)).pipe(
      Effect.onExit((exit) => Effect.sync(() => journal.add({ what: "ended", exit }))),
      Effect.exit,
    );
    const fiber = yield* Effect.forkDetach(Effect.provideContext(consumer, context), { startImmediately: false });
    const act = outside(journal, processor, fiber);
    triggers(scenario, journal, act);
    yield* timed(scenario, act);
    yield* pass(`${hoursMax} hours`);
    const ended = yield* endedBy(scenario, fiber, act);
    yield* pass("1 hour");
    const record = yield* Effect.orDie(Context.get(context, RunRecorder).run(runId));
    journal.add({ what: "outside", kind: "layer_closed" });
    const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void));
    yield* pass("1 hour");
    const closed = closing.pollUnsafe() !== undefined;
    return { scenario, journal: journal.entries, record, ended, closed };
  });

/** Whether the consumer's stream has ended; a run that waits by design is stopped from outside first. */
const endedBy = (
  scenario: Scenario,
  fiber: Fiber.Fiber<unknown, unknown>,
  act: (what: Outside) => Effect.Effect<void>,
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    if (fiber.pollUnsafe() !== undefined || !mayHang(scenario)) return fiber.pollUnsafe() !== undefined;
    yield* act("cancel");
    yield* pass("1 hour");
    // A consumer that runs a hanging handler of its own hangs itself.
    if (fiber.pollUnsafe() === undefined) yield* act("interrupt");
    yield* pass("1 hour");
    return fiber.pollUnsafe() !== undefined;
  });

const consume = (scenario: Scenario, journal: Journal, processor: StreamProcessor["Service"], tools: Tools) => {
  const { kind, n, ms } = scenario.consumer;
  const options = optionsOf(scenario, journal, tools);
  let count = 0;
  const step = (part: Part | undefined): Effect.Effect<void, ConsumerBroke> => {
    count += 1;
    if (kind === "failing" && count === n) return Effect.fail(new ConsumerBroke());
    const use = part === undefined ? Effect.void : tools.handed(part);
    return kind === "slow" ? Effect.andThen(use, pause(ms)) : use;
  };
  const limited = <A, E, R>(stream: Stream.Stream<A, E, R>) => (kind === "take" ? Stream.take(stream, n) : stream);
  const withdrawn = new Set<number>();
  const run =
    scenario.surface === "parts"
      ? Stream.runForEach(limited(processor.parts(options)), (part) => {
          journal.add({ what: "got", part });
          return step(part);
        })
      : Stream.runForEach(limited(processor.run(options)), (event) => {
          journal.add({ what: "seen", event });
          if (event._tag === "AttemptDiscarded") withdrawn.add(event.attempt);
          return step(event._tag === "Part" ? event.part : undefined);
        });
  return Effect.ensuring(
    run,
    Effect.suspend(() => tools.afterwards(withdrawn)),
  );
};

const optionsOf = (scenario: Scenario, journal: Journal, tools: Tools): RunOptions<Part, ProviderBroke, never> => {
  const { cursor, refresh, policy, reveal, canContinue, continueText, emptyIsFailure, streaming, clocks, budget } =
    scenario.options;
  return {
    provider: { id: "simulated", reasoning: false },
    runId,
    tools: tools.boundaries,
    attempt: provider(scenario, journal),
    observe: (part) => part.says,
    classify: (error): Failure => {
      if (scenario.classifyThrows) throw new Error("classify threw");
      return error.failure;
    },
    ...{ reveal, canContinue, continueText, emptyIsFailure, streaming, clocks, budget },
    policy: policyOf(policy),
    ...(cursor ? { cursor: cursorOf } : {}),
    ...(refresh === "none" ? {} : { refreshCredentials: refreshes[refresh] }),
  };
};

const refreshes = {
  ok: pause(20),
  failing: Effect.andThen(pause(20), Effect.fail("no credentials")),
  dying: Effect.die(new Error("the refresh died")),
  hanging: Effect.never,
} as const;

const outside = (journal: Journal, processor: StreamProcessor["Service"], fiber: Fiber.Fiber<unknown, unknown>) => {
  const interrupt = (by?: "user" | "lifecycle") =>
    Effect.sync(() => fiber.interruptUnsafe(1, by === undefined ? undefined : Context.make(InterruptSignature, by)));
  const actions: Record<Outside, Effect.Effect<unknown>> = {
    cancel: processor.cancel(runId),
    close: processor.close("simulated"),
    interrupt: interrupt(),
    signed_user: interrupt("user"),
    signed_lifecycle: interrupt("lifecycle"),
  };
  return (what: Outside): Effect.Effect<void> =>
    Effect.suspend(() => {
      journal.add({ what: "outside", kind: what });
      return Effect.asVoid(Effect.forkDetach(actions[what], { startImmediately: true }));
    });
};

/** What happens at a time. */
const timed = (scenario: Scenario, act: (what: Outside) => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.forEach(
    scenario.outside,
    ({ when, what }) =>
      "at" in when ? Effect.forkDetach(Effect.andThen(pause(startMs + when.at), act(what))) : Effect.void,
    { discard: true },
  );

/** What happens in the very step in which something else does. */
const triggers = (scenario: Scenario, journal: Journal, act: (what: Outside) => Effect.Effect<void>): void => {
  const counts = { event: 0, write: 0, handler: 0, question: 0, opened: 0 };
  const kinds: Partial<Record<string, keyof typeof counts>> = {
    seen: "event",
    got: "event",
    writing: "write",
    handler_started: "handler",
    opened: "opened",
  };
  const fires = (when: Moment, on: keyof typeof counts) => "on" in when && when.on === on && when.nth === counts[on];
  journal.listen((entry) => {
    const asks = entry.what === "seen" && entry.event._tag === "QuestionAsked";
    for (const on of [kinds[entry.what], asks ? ("question" as const) : undefined]) {
      if (on === undefined) continue;
      counts[on] += 1;
      for (const { when, what } of scenario.outside) if (fires(when, on)) Effect.runSync(act(what));
    }
  });
};

const layerOf = (scenario: Scenario, journal: Journal) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(Layer.merge(recording(scenario, journal), answering(scenario))),
    Layer.provideMerge(Layer.succeed(Random.Random, randomOf(scenario))),
    Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: scenario.drainMs ?? Number.POSITIVE_INFINITY })),
  );

const randomOf = (scenario: Scenario) => {
  const dice = new Dice(scenario.seed);
  return {
    // Steps of 1/250, so that every delay is a whole number of milliseconds.
    nextDoubleUnsafe: () => dice.between(0, 249) / 250,
    nextIntUnsafe: () => dice.between(0, 1_000_000),
  };
};

/** A recorder in memory whose writes take time, fail and die as the scenario says. */
const recording = (scenario: Scenario, journal: Journal) =>
  Layer.effect(
    RunRecorder,
    Effect.map(RunRecorder, (memory) => {
      const { delays, dies, fails } = scenario.recorder;
      let count = 0;
      const write: RunRecorder["Service"]["write"] = (id, given) => {
        // Which process started the run is drawn by the machine; a journal must come out the same again.
        const entries = given.map((it) => (it._tag === "RunStarted" ? { ...it, started_by: "simulated" } : it));
        return Effect.suspend(() => {
          const number = count++;
          journal.add({ what: "writing", entries });
          if (dies.includes(number)) return Effect.die(new Error("the recorder died"));
          const commit = fails.includes(number)
            ? Effect.fail(new RecorderError({ reason: "unavailable", run_id: id, message: "simulated" }))
            : memory.write(id, entries);
          return Effect.andThen(pause(delays[number % delays.length] ?? 0), commit);
        }).pipe(
          Effect.onExit((exit) =>
            Effect.sync(() => journal.add({ what: "written", entries, ok: Exit.isSuccess(exit) })),
          ),
        );
      };
      return { ...memory, write };
    }),
  ).pipe(Layer.provide(RunRecorder.layerMemory()));

const answering = (scenario: Scenario) => {
  let count = 0;
  return Layer.succeed(UserDecisions, {
    ask: (): Effect.Effect<Choice> =>
      Effect.suspend(() => {
        const { answers } = scenario;
        const { choice, delay } = answers[Math.min(count++, answers.length - 1)] ?? { choice: "stop", delay: 0 };
        if (choice === "hang") return Effect.never;
        if (choice === "dies") return Effect.die(new Error("whoever asks died"));
        return Effect.as(pause(delay), choice);
      }),
  });
};
