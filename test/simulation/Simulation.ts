/**
 * Plays a scenario under virtual time and returns its trace, without judging it.
 */
import { Clock, Context, Effect, Exit, Fiber, Layer, Random, Scope } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../src/runtime/contract/InterruptSignature.ts";
import type { RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import * as Routes from "../../src/stages/routes/Routes.ts";
import { Calm } from "./Calm.ts";
import { Dice } from "./Dice.ts";
import { Edges } from "./Edges.ts";
import { Journal, type Part, type Trace } from "./Journal.ts";
import { repeated } from "./Repeat.ts";
import { mayHang, type Outside, type Scenario, type StoreMoment } from "./Scenario.ts";
import { Telemetry } from "./Telemetry.ts";
import { consume, type Surface } from "./world/Consumer.ts";
import * as FreezingClock from "./world/FreezingClock.ts";
import { Network } from "./world/Network.ts";
import { policyOf } from "./world/Policies.ts";
import { cursorOf, type ProviderBroke, provider } from "./world/Provider.ts";
import { seamOf } from "./world/Seam.ts";
import { Store } from "./world/Store.ts";
import { runId, Tools } from "./world/Tools.ts";
import { pass, pause, layer as virtualTime } from "./world/VirtualTime.ts";

/** Maximum virtual hours until a run ends by itself, unless the scenario waits forever by design. */
export const hoursMax = 12;

/** Virtual milliseconds before the run starts, because TestClock waits only for fibers that it has woken. */
const startMs = 1;

export const simulate = (scenario: Scenario): Promise<Trace> => {
  const telemetry = new Telemetry();
  return Effect.runPromise(
    play(scenario).pipe(
      Effect.provide(virtualTime),
      Effect.provideContext(telemetry.services),
      Effect.zipWith(telemetry.lines, (trace, lines) => ({ ...trace, telemetry: lines })),
    ),
  );
};

const play = (scenario: Scenario): Effect.Effect<Omit<Trace, "telemetry">> =>
  Effect.gen(function* () {
    const inner = yield* Clock.Clock;
    const freezing = scenario.world.freezes.length > 0 ? FreezingClock.make(inner) : undefined;
    const clock = freezing ?? inner;
    // The journal counts only the time in which the process ran; it skips freezes.
    const journal = new Journal(() => inner.currentTimeMillisUnsafe() - startMs);
    const calm = new Calm(scenario);
    const scope = yield* Scope.make();
    const memory = Context.get(yield* Layer.buildWithScope(RunRecorder.layerMemory(), scope), RunRecorder);
    const store = new Store(scenario, journal, memory, () => calm.isOn, yield* Effect.context<never>());
    const layer = Layer.provideMerge(layerOf(scenario, store, calm), Layer.succeed(Clock.Clock, clock));
    const context = yield* Layer.buildWithScope(layer, scope);
    const processor = Context.get(context, StreamProcessor);
    const tools = new Tools(scenario, journal, Context.get(context, ToolGuard), calm);
    const options = optionsOf(scenario, journal, tools, calm);
    const surface: Surface =
      scenario.surface === "parts"
        ? { kind: "parts", stream: processor.parts(options) }
        : { kind: "run", stream: processor.run(options) };
    const consumer = Effect.andThen(pause(startMs), consume(scenario, journal, surface, tools)).pipe(
      Effect.onExit((exit) => Effect.sync(() => journal.add({ what: "ended", exit }))),
      Effect.exit,
    );
    const fiber = yield* Effect.forkDetach(Effect.provideContext(consumer, context), { startImmediately: false });
    const act = outside(journal, processor, fiber);
    const { again, calmAt } = scenario.world;
    if (again !== null) {
      const when = again.when === "ended" ? Fiber.await(fiber) : pause(startMs + again.when);
      const second = repeated(again, { surface, options, processor, layer, scope }, journal);
      yield* Effect.forkDetach(Effect.provideContext(Effect.andThen(when, second), context));
    }
    if (calmAt !== null) {
      const calms = Effect.sync(() => {
        journal.add({ what: "world", kind: "calm" });
        calm.begin();
      });
      yield* Effect.forkDetach(Effect.andThen(pause(startMs + calmAt), calms));
    }
    const happenings = happeningsOf(scenario, journal, { act, calm, inner, freezing, store });
    triggers(happenings, journal);
    yield* timed(happenings);
    yield* pass(`${hoursMax} hours`);
    const ended = yield* endedBy(scenario, fiber, act);
    yield* pass("1 hour");
    journal.add({ what: "outside", kind: "layer_closed" });
    const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void));
    yield* pass("1 hour");
    const closed = closing.pollUnsafe() !== undefined;
    const record = yield* Effect.orDie(memory.run(runId));
    return { scenario, journal: journal.entries, record, ended, closed };
  });

/** Returns true if the consumer's stream has ended. A run that waits by design is stopped from outside first. */
const endedBy = (
  scenario: Scenario,
  fiber: Fiber.Fiber<unknown, unknown>,
  act: (what: Outside) => Effect.Effect<void>,
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    if (fiber.pollUnsafe() !== undefined || !mayHang(scenario)) return fiber.pollUnsafe() !== undefined;
    yield* act("cancel");
    yield* pass("1 hour");
    // A consumer that runs a hanging handler itself hangs, too.
    if (fiber.pollUnsafe() === undefined) yield* act("interrupt");
    yield* pass("1 hour");
    return fiber.pollUnsafe() !== undefined;
  });

const optionsOf = (
  scenario: Scenario,
  journal: Journal,
  tools: Tools,
  calm: Calm,
): RunOptions<Part, ProviderBroke, never> => {
  const { cursor, refresh, policy, reveal, canContinue, continueText, emptyIsFailure, streaming } = scenario.options;
  const edges = new Edges(scenario.world.edges);
  const { routes, seam } = scenario.world;
  const network = new Network(scenario, calm, () => journal.now);
  const attempt = provider(scenario, journal, calm, network);
  const observe = (part: Part) => edges.observed(part.says);
  const continues = canContinue ? { canContinue: attempt } : {};
  // Some scenarios request continued text without a seam, as untyped JavaScript may.
  return {
    provider: {
      id: "simulated",
      reasoning: false,
      ...edges.text("provider.id", "id"),
      ...edges.text("provider.model", "model"),
    },
    runId,
    tools: tools.boundaries,
    attempt,
    observe,
    ...(routes === null
      ? {}
      : { routes: Routes.of(furtherRoutes(routes.further, { attempt, observe, ...continues }), { own: routes.own }) }),
    classify: (error): Failure => {
      if (scenario.classifyThrows) throw new Error("classify threw");
      return error.failure;
    },
    ...(seam === null ? {} : { seam: seamOf(seam) }),
    ...(scenario.world.record === "behind" ? { record: "behind" as const } : {}),
    ...network.options,
    ...continues,
    ...{ reveal, continueText, emptyIsFailure, streaming },
    clocks: { ...scenario.options.clocks, ...edges.numbers("clocks") },
    budget: { ...scenario.options.budget, ...scenario.world.outage?.budget, ...edges.numbers("budget") },
    policy: policyOf(policy),
    ...edges.text("retryOf", "retryOf"),
    ...(edges.weighs ? { sizeOf: () => edges.number("sizeOf", 1) } : {}),
    ...(scenario.world.digest === "none" ? {} : { transcript: "what the user asked" }),
    ...(cursor ? { cursor: cursorOf } : {}),
    ...(refresh === "none" ? {} : { refreshCredentials: refreshes(calm)[refresh] }),
  } as RunOptions<Part, ProviderBroke, never>;
};

/** Routes to other providers, which answer from the same scripts. */
const furtherRoutes = (
  count: number,
  it: Pick<RunOptions<Part, ProviderBroke, never>, "attempt" | "canContinue" | "observe">,
) =>
  Array.from({ length: count }, (_, at) => ({
    id: `route ${at + 1}`,
    provider: { id: `other ${at + 1}`, reasoning: false },
    ...it,
  }));

const refreshes = (calm: Calm) => ({
  ok: pause(20),
  failing: Effect.andThen(pause(20), Effect.fail("no credentials")),
  dying: Effect.die(new Error("the refresh died")),
  hanging: calm.forever,
});

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

/** An event with its time. */
interface Happening {
  readonly when: StoreMoment;
  readonly does: Effect.Effect<void>;
}

/** Everything that an event can act on. */
interface Reach {
  readonly act: (what: Outside) => Effect.Effect<void>;
  readonly calm: Calm;
  /** The clock of the world outside the process: a trigger runs outside any fiber. */
  readonly inner: Clock.Clock;
  readonly freezing: FreezingClock.FreezingClock | undefined;
  readonly store: Store;
}

/** All outside events of a run, none of them after the calm. */
const happeningsOf = (
  { outside: acts, world }: Scenario,
  journal: Journal,
  { act, calm, freezing, inner, store }: Reach,
): ReadonlyArray<Happening> => {
  const all: ReadonlyArray<Happening> = [
    ...acts.map(({ what, when }) => ({ when, does: act(what) })),
    ...world.away.map(({ ms, when }) => ({
      when,
      does: Effect.suspend(() => {
        journal.add({ what: "world", kind: "store_leaves" });
        return Effect.asVoid(Effect.forkDetach(store.leaves(ms), { startImmediately: true }));
      }),
    })),
    ...world.freezes.map(({ monotonic, wall, when }) => ({
      when,
      does: Effect.sync(() => {
        journal.add({ what: "world", kind: "freeze" });
        freezing?.jump(wall, monotonic);
      }),
    })),
  ];
  return all.map(({ does, when }) => ({
    when,
    does: Effect.provideService(
      Effect.suspend(() => (calm.isOn ? Effect.void : does)),
      Clock.Clock,
      inner,
    ),
  }));
};

/** Runs the events that have a time. */
const timed = (happenings: ReadonlyArray<Happening>): Effect.Effect<void> =>
  Effect.forEach(
    happenings,
    ({ does, when }) =>
      "at" in when ? Effect.forkDetach(Effect.andThen(pause(startMs + when.at), does)) : Effect.void,
    { discard: true },
  );

/** Runs the events that happen in the same step as another event. */
const triggers = (happenings: ReadonlyArray<Happening>, journal: Journal): void => {
  const counts = { event: 0, write: 0, handler: 0, question: 0, opened: 0, end: 0 };
  const kinds: Partial<Record<string, keyof typeof counts>> = {
    seen: "event",
    got: "event",
    writing: "write",
    handler_started: "handler",
    opened: "opened",
  };
  const fires = (when: StoreMoment, on: keyof typeof counts) =>
    "on" in when && when.on === on && when.nth === counts[on];
  journal.listen((entry) => {
    const asks = entry.what === "seen" && entry.event._tag === "QuestionAsked";
    const ends = entry.what === "writing" && entry.entries.some(({ _tag }) => _tag === "RunEnded");
    for (const on of [
      kinds[entry.what],
      asks ? ("question" as const) : undefined,
      ends ? ("end" as const) : undefined,
    ]) {
      if (on === undefined) continue;
      counts[on] += 1;
      for (const { does, when } of happenings) if (fires(when, on)) Effect.runSync(does);
    }
  });
};

const layerOf = (scenario: Scenario, store: Store, calm: Calm) =>
  StreamProcessor.layer.pipe(
    Layer.provide(Layer.merge(Layer.succeed(RunRecorder, store.recorder), answering(scenario, calm))),
    Layer.provideMerge(Layer.succeed(Random.Random, randomOf(scenario.seed))),
    Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: scenario.drainMs ?? Number.POSITIVE_INFINITY })),
  );

/** Random numbers that a seed determines. */
export const randomOf = (seed: number) => {
  const dice = new Dice(seed);
  return {
    // Steps of 1/250 make every delay a whole number of milliseconds.
    nextDoubleUnsafe: () => dice.between(0, 249) / 250,
    nextIntUnsafe: () => dice.between(0, 1_000_000),
  };
};

const answering = (scenario: Scenario, calm: Calm) => {
  let count = 0;
  return Layer.succeed(UserDecisions, {
    ask: (): Effect.Effect<Choice> =>
      Effect.suspend(() => {
        const { answers } = scenario;
        const { choice, delay } = answers[Math.min(count++, answers.length - 1)] ?? { choice: "stop", delay: 0 };
        if (choice === "hang") return Effect.as(calm.forever, "stop" as const);
        if (choice !== "dies") return Effect.as(calm.pause(delay), choice);
        return calm.isOn ? Effect.succeed("stop" as const) : Effect.die(new Error("the person's own code died"));
      }),
  });
};
