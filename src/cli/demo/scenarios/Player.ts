/**
 * Plays one scenario with a separate fault server, the real client, StreamProcessor, and a scripted caller.
 */
import { Clock, Context, Deferred, Duration, Effect, Exit, Fiber, Layer, Random, Schedule, Stream } from "effect";
import { keepAliveMs, keepAliveMsDefault } from "../../../client/ClientConfig.ts";
import { type ExchangeRecord, ProviderClient } from "../../../client/index.ts";
import type { RunIncident } from "../../../domain/RunIncident.ts";
import { type Part, protocols } from "../../../provider/Protocols.ts";
import type { RunRecord } from "../../../recorder/RunRecord.ts";
import { RunRecorder } from "../../../recorder/RunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions, TextOptions } from "../../../runtime/contract/RunOptions.ts";
import type { ReadyCall } from "../../../runtime/contract/ToolCall.ts";
import { StreamProcessor } from "../../../runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../../runtime/tools/ToolGuard.ts";
import * as Linger from "../../../stages/output/Linger.ts";
import * as Routes from "../../../stages/routes/Routes.ts";
import { FaultProvider, type RequestLog } from "../../../testing/index.ts";
import { Door } from "../stage/Door.ts";
import { ScriptedPerson } from "../stage/ScriptedPerson.ts";
import { TextJoiner } from "../stage/TextJoiner.ts";
import { Transcript } from "../stage/Transcript.ts";
import { type DemoTool, recycledMs, type Scenario } from "./Scenario.ts";

/** Maximum time for the server to notice that its last client has gone, in milliseconds. */
export const serverEndsMs = 2_000;

/** Tolerance for recycling an idle connection, in milliseconds: undici's timers tick every half second. */
const recycleGraceMs = 2_000;

/** Linger time of a run whose caller leaves, in milliseconds. */
const lingersMs = 10_000;

/** Polling interval, in milliseconds. */
const lookEveryMs = 5;

/** A local address without a listener (port 1 is reserved for tcpmux, RFC 1078). */
const refusing = "http://127.0.0.1:1";

/** The outcome of a run, as observed by the caller, the recorder and the server. */
export interface PlayedRun {
  readonly completed: boolean;
  readonly error: RunInterrupted | undefined;
  /** True if anything visible was withdrawn. */
  readonly withdrawn: boolean;
  /** True if an attempt continued from settled calls or shown text. */
  readonly continued: boolean;
  readonly text: string;
  readonly reasoning: string;
  readonly attempts: number;
  /** Inputs of the tool handlers that ran, in order. */
  readonly toolInputs: ReadonlyArray<string>;
  readonly incidents: ReadonlyArray<RunIncident>;
  /** The requests of this run that the server received. */
  readonly log: ReadonlyArray<RequestLog>;
  /** The exchanges that the client reported, the warm-up's first. */
  readonly exchanges: ReadonlyArray<ExchangeRecord>;
  /** Idle time after which the client closes a connection, in milliseconds. */
  readonly keptMs: number;
  /**
   * Time from the first break to the first part of the last attempt, in milliseconds; undefined if nothing arrived after a break.
   */
  readonly recoveryMs: number | undefined;
  /** Reasons for which the run waited before it sent a request, each once. */
  readonly waits: ReadonlyArray<"path" | "cooldown">;
  /** The route that answered; undefined if it is the first route of the run. */
  readonly route: string | undefined;
  /** The recorded proof of each seam, or the recorded reason why shown text was not continued. */
  readonly seams: ReadonlyArray<string>;
  /** True if the caller left and was attached to its run again. */
  readonly attached: boolean;
}

/**
 * Plays a scenario to its end.
 *
 * @param runId the id of its record
 * @param seed the seed of the waits' jitter
 */
export const play = Effect.fn("demo.play")(
  function* (scenario: Scenario, runId: string, _seed: number) {
    const server = yield* FaultProvider.make({ script: { answers: scenario.answers, after: "repeat" } });
    const { client, exchanges, keptMs } = yield* makeClient(scenario);
    const clock = sleepingClock(yield* Clock.Clock);
    const processor = yield* scenario.sleepsMs === undefined ? StreamProcessor : makeProcessor(clock);
    const door = yield* Door.make(server.port);
    const url = server.endpoint(scenario.protocol);
    // Only a scenario with an outage uses the local proxy (`Door`), because the proxy, not the server, determines how a proxied connection
    // ends.
    const place: Place = {
      client,
      scenario,
      url: scenario.outageMs === undefined ? url : url.replace(server.url, door.url),
      joiner: scenario.goesOn && new TextJoiner(scenario.protocol, url, scenario.goesOn),
    };
    const handlers = yield* Handlers.make(scenario.tools ?? []);
    if (scenario.warmUp !== undefined) yield* Stream.runDrain(request(place, undefined));
    if (scenario.warmUp === "recycled") {
      yield* pollUntil(
        Effect.map(server.connections, (open) => open === 0),
        keptMs + recycleGraceMs,
      );
    }
    const options = makeOptions(place, runId, handlers);
    yield* prepare(place, door, processor, options);
    const before = (yield* server.log).length;
    yield* ScriptedPerson.use((person) => person.expect(runId, scenario.answer ?? "stop"));
    const caller = new Caller(scenario, runId, handlers, processor, clock);
    const watched = processor.run(options).pipe(
      Stream.tap((event) => Effect.sync(() => place.joiner?.take(event))),
      Stream.runForEach((event) => caller.take(event)),
    );
    const exit = yield* Effect.exit(
      scenario.leavesAfter === undefined ? watched : leaveAndReturn(watched, caller, server, processor),
    );
    yield* Effect.timeoutOption(
      server.until((rows) => (rows.every((row) => row.outcome !== "open") ? rows : undefined)),
      Duration.millis(serverEndsMs),
    );
    // Exchanges are reported once their attempt is closed, and the run does not wait for that.
    yield* pollUntil(
      Effect.sync(() => exchanges.length >= caller.attempts + before),
      serverEndsMs,
    );
    const log = (yield* server.log).slice(before);
    const record = yield* (yield* RunRecorder).run(runId);
    return {
      ...caller.outcome(exit),
      seams: record === undefined ? [] : seamsOf(record),
      toolInputs: handlers.inputs,
      incidents: record?.incidents ?? [],
      log,
      exchanges,
      keptMs,
    } satisfies PlayedRun;
  },
  (effect, scenario, _runId, seed) => Effect.scoped(Random.withSeed(effect, `${seed} ${scenario.name}`)),
);

/** Lets the caller leave midway and return after the provider has sent everything, so there is only one request. */
const leaveAndReturn = Effect.fnUntraced(function* (
  watched: Effect.Effect<void, RunInterrupted>,
  caller: Caller,
  server: FaultProvider["Service"],
  processor: StreamProcessor["Service"],
) {
  const first = yield* Effect.forkChild(watched);
  yield* Effect.raceFirst(caller.awaitLeave, Fiber.await(first));
  yield* Fiber.interrupt(first);
  const { last } = caller;
  if (last === undefined) return yield* Fiber.join(first);
  yield* server.until((rows) => rows.find(({ outcome }) => outcome === "complete"));
  yield* processor.attach<Part>(caller.runId, { after: last }).pipe(
    Stream.runForEach((event) => caller.take(event)),
    Effect.catchTag("AttachRefused", Effect.die),
  );
});

/** Lists the proof of every continuation of shown text (seam), then the reason for every one that was refused. */
const seamsOf = ({ attempts, evidence }: RunRecord): ReadonlyArray<string> => [
  ...attempts.flatMap(({ seam }) => (seam?.proven === true ? [seam.proof] : [])),
  ...[...evidence.first, ...evidence.last].flatMap(({ detail, event }) =>
    event === "seam_refused" && detail !== undefined ? [detail] : [],
  ),
];

/**
 * Creates a client that reports its exchanges. With a warm-up it has a single connection, so that the run reuses the connection of the
 * warm-up.
 */
const makeClient = Effect.fnUntraced(function* ({ warmUp }: Scenario) {
  const exchanges: Array<ExchangeRecord> = [];
  const keptMs = yield* warmUp === "kept"
    ? Effect.succeed(keepAliveMsDefault)
    : keepAliveMs(undefined, warmUp === undefined ? keepAliveMsDefault : recycledMs);
  const client = yield* ProviderClient.make({
    keepAliveMs: keptMs,
    onExchange: (record) => void exchanges.push(record),
    ...(warmUp === undefined ? {} : { connections: 1 }),
  });
  return { client, exchanges, keptMs };
});

/** Polls until a condition holds or the timeout expires. A condition that never held shows in the outcome. */
const pollUntil = (look: Effect.Effect<boolean>, ms: number): Effect.Effect<unknown> =>
  Effect.repeat(look, { until: (yes) => yes, schedule: Schedule.spaced(Duration.millis(lookEveryMs)) }).pipe(
    Effect.timeoutOption(Duration.millis(ms)),
  );

/** The client and the URL that a run's requests use, with the scenario that decides their content. */
interface Place {
  readonly client: ProviderClient["Service"];
  readonly scenario: Scenario;
  readonly url: string;
  /** Continues the shown text; undefined if the scenario does not. */
  readonly joiner: TextJoiner | undefined;
}

/** Creates a separate processor whose clock can jump. */
const makeProcessor = (clock: Clock.Clock) =>
  Effect.map(
    Layer.build(Layer.fresh(StreamProcessor.layer).pipe(Layer.provide(Layer.succeed(Clock.Clock, clock)))),
    (context) => Context.get(context, StreamProcessor),
  );

/** Sets up the state before the run: an outage of a path that was reached before, or a refusal of another run. */
const prepare = Effect.fnUntraced(function* (
  { scenario }: Place,
  door: Door,
  processor: StreamProcessor["Service"],
  options: RunOptions<Part, unknown, never>,
) {
  const { outageMs, sibling } = scenario;
  if (outageMs !== undefined) {
    yield* Stream.runDrain(processor.run({ ...options, runId: `${options.runId}-before` })).pipe(Effect.ignore);
    yield* door.shut;
    yield* Effect.forkScoped(Effect.delay(door.open, outageMs));
  }
  if (sibling !== true) return;
  // Stops the sibling after its refusal. The cooldown that it learned remains.
  yield* processor.run({ ...options, runId: `${options.runId}-sibling` }).pipe(
    Stream.takeUntil(({ _tag }) => _tag === "RetryScheduled"),
    Stream.runDrain,
    Effect.ignore,
  );
});

const makeOptions = (place: Place, runId: string, handlers: Handlers): RunOptions<Part, unknown, never> => ({
  ...makePlainOptions(place, runId, handlers),
  ...(place.scenario.secondRoute === undefined
    ? {}
    : {
        routes: Routes.of([
          {
            id: place.scenario.secondRoute,
            provider: { id: `${place.scenario.protocol}-second`, model: "fault-model", reasoning: false },
            path: `${runId}-second`,
            attempt: (attempt: AttemptContext) => request(place, attempt),
            observe: (part: Part) => part.observation,
          },
        ]),
      }),
});

const makePlainOptions = (place: Place, runId: string, handlers: Handlers): RunOptions<Part, unknown, never> => {
  const { scenario } = place;
  const attempt = (context: AttemptContext) => request(place, context);
  const text: TextOptions<Part> = place.joiner?.options ?? {};
  return {
    runId,
    // The refusing address was never reached. Under a provider id that has answered before, the refusal would count as an outage.
    provider: {
      id: scenario.refusedFirst === true ? runId : scenario.protocol,
      model: "fault-model",
      reasoning: false,
    },
    // Scenarios run concurrently, and each needs a separate network path.
    path: runId,
    tools: handlers.exposed,
    attempt,
    observe: (part) => part.observation,
    ...(scenario.reveal === undefined ? {} : { reveal: scenario.reveal }),
    ...(scenario.clocks === undefined ? {} : { clocks: scenario.clocks }),
    ...(scenario.leavesAfter === undefined ? {} : { linger: Linger.of(lingersMs) }),
    ...(scenario.canContinue === true || place.joiner !== undefined ? { canContinue: attempt } : {}),
    ...text,
    ...(scenario.canRefresh === true ? { refreshCredentials: Effect.void } : {}),
  };
};

/** Sends one request. A continuation lists the settled calls, so that the judge sees a different request. */
const request = ({ client, joiner, scenario, url }: Place, attempt: AttemptContext | undefined) => {
  const refused = scenario.refusedFirst === true && attempt?.attempt === 1;
  return client.stream({
    protocol: protocols.get(scenario.protocol),
    url: refused ? url.replace(new URL(url).origin, refusing) : url,
    body:
      joiner !== undefined && attempt !== undefined
        ? joiner.body(attempt)
        : {
            model: "fault-model",
            stream: true,
            run: attempt === undefined ? "warm-up" : scenario.name,
            ...(attempt?.request === "continue" ? { settled: attempt.calls } : {}),
          },
    ...(attempt === undefined ? {} : { delivery: attempt.delivery, bytes: attempt.bytes }),
  });
};

/** The tools of a run. Their handlers only record their input. */
class Handlers {
  readonly inputs: Array<string> = [];
  readonly exposed: ReadonlyArray<ToolGuard.Tool>;
  readonly #tools: ReadonlyArray<DemoTool>;
  readonly #guarded: ReadonlyMap<string, GuardedTool<string, void, never, never>>;

  static readonly make = (tools: ReadonlyArray<DemoTool>): Effect.Effect<Handlers, never, ToolGuard> =>
    Effect.map(ToolGuard, (guard) => new Handlers(tools, guard));

  constructor(tools: ReadonlyArray<DemoTool>, guard: ToolGuard["Service"]) {
    const handler = (input: string) => Effect.sync(() => void this.inputs.push(input));
    this.#tools = tools;
    this.#guarded = new Map(
      tools.filter((tool) => tool.guarded).map((tool) => [tool.name, guard.ofEffect(tool.effect)(tool.name, handler)]),
    );
    this.exposed = tools.map(
      (tool) => this.#guarded.get(tool.name) ?? { name: tool.name, executor: "runtime", effect: tool.effect },
    );
  }

  /** Runs the calls of the tools whose `runs` is `when`. If a guarded tool refuses a call, nothing has run. */
  run(calls: ReadonlyArray<ReadyCall>, when: DemoTool["runs"]): Effect.Effect<void> {
    const due = calls.filter((call) => this.#tools.some((tool) => tool.name === call.tool && tool.runs === when));
    return Effect.forEach(due, (call) => this.#runOne(call), { discard: true });
  }

  #runOne(call: ReadyCall): Effect.Effect<void> {
    const input = call.input ?? "";
    const tool = this.#guarded.get(call.tool);
    if (tool === undefined) return Effect.sync(() => void this.inputs.push(input));
    return Effect.catchTag(tool.run(call, input), "ToolRefused", (refused) =>
      Effect.logDebug("a tool was refused", refused.reason),
    );
  }
}

/** The program that consumes the run: it shows and withdraws parts, runs tools, and cancels. */
class Caller {
  readonly #scenario: Scenario;
  readonly runId: string;
  readonly #handlers: Handlers;
  readonly #processor: StreamProcessor["Service"];
  readonly #clock: SleepingClock;
  readonly #transcript = new Transcript();
  #calls: ReadonlyArray<ReadyCall> = [];
  #completed = false;
  #slept = false;
  #route: string | undefined;
  readonly #waits = new Set<"path" | "cooldown">();
  attempts = 0;
  #continued = false;
  readonly #left = Deferred.makeUnsafe<void>();
  /** The last part received before the caller left; undefined while it is connected. */
  last: { readonly attempt: number; readonly ordinal: number } | undefined;
  #brokeAt: number | undefined;
  #recoveredAt: number | undefined;

  constructor(
    scenario: Scenario,
    runId: string,
    handlers: Handlers,
    processor: StreamProcessor["Service"],
    clock: SleepingClock,
  ) {
    this.#scenario = scenario;
    this.runId = runId;
    this.#handlers = handlers;
    this.#processor = processor;
    this.#clock = clock;
  }

  take(event: RunEvent<Part>): Effect.Effect<void> {
    this.#transcript.apply(event);
    switch (event._tag) {
      case "AttemptStarted":
        this.attempts = event.attempt;
        this.#continued ||= event.mode === "continue";
        this.#recoveredAt = undefined;
        return Effect.void;
      case "RetryScheduled":
      case "QuestionAsked":
        this.#brokeAt ??= this.#clock.currentTimeMillisUnsafe();
        return Effect.void;
      case "AttemptDiscarded":
        this.#calls = this.#calls.filter((call) => call.attempt !== event.attempt);
        return Effect.void;
      case "Part":
        this.#recoveredAt ??= this.#clock.currentTimeMillisUnsafe();
        this.#calls = [...this.#calls, ...(event.calls ?? [])];
        this.#sleepIfDue();
        return Effect.andThen(
          Effect.andThen(this.#handlers.run(event.calls ?? [], "at_once"), this.#cancelIfDue),
          this.#leaveIfDue(event),
        );
      case "RunCompleted":
        this.#completed = true;
        this.#route = event.route;
        return this.#handlers.run(this.#calls, "at_end");
      case "Waiting":
        this.#waits.add(event.for);
        return Effect.void;
      case "QuestionAnswered":
      case "CallVerified":
      case "Continued":
        return Effect.void;
    }
  }

  #sleepIfDue(): void {
    const { sleepsMs } = this.#scenario;
    if (sleepsMs === undefined || this.#slept) return;
    this.#slept = true;
    this.#clock.advance(sleepsMs);
  }

  /** Completes when the caller has left. */
  get awaitLeave(): Effect.Effect<void> {
    return Deferred.await(this.#left);
  }

  /** Stops reading for good once the caller has shown `leavesAfter` deltas. The reading fiber is then interrupted. */
  #leaveIfDue({ attempt, ordinal }: Extract<RunEvent<Part>, { readonly _tag: "Part" }>): Effect.Effect<unknown> {
    if (this.last !== undefined || this.#deltas !== this.#scenario.leavesAfter) return Effect.void;
    this.last = { attempt, ordinal };
    Deferred.doneUnsafe(this.#left, Exit.void);
    return Effect.never;
  }

  get #deltas(): number {
    return this.#transcript.read("text").split("·").length - 1;
  }

  get #cancelIfDue(): Effect.Effect<unknown> {
    const { cancelAfter } = this.#scenario;
    if (cancelAfter === undefined) return Effect.void;
    return this.#deltas === cancelAfter ? this.#processor.cancel(this.runId) : Effect.void;
  }

  /** Returns the caller's view of the finished run. */
  outcome(exit: Exit.Exit<void, RunInterrupted>) {
    const error = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : undefined;
    return {
      completed: this.#completed && Exit.isSuccess(exit),
      error,
      withdrawn: this.#transcript.withdrawn,
      attached: this.last !== undefined,
      continued: this.#continued,
      text: this.#transcript.read("text"),
      reasoning: this.#transcript.read("reasoning"),
      attempts: this.attempts,
      waits: [...this.#waits],
      route: this.#route,
      recoveryMs:
        this.#brokeAt === undefined || this.#recoveredAt === undefined || this.#recoveredAt < this.#brokeAt
          ? undefined
          : this.#recoveredAt - this.#brokeAt,
    };
  }
}

/** A clock that can jump, as on a machine that sleeps: timers that are pending fire late. */
interface SleepingClock extends Clock.Clock {
  /** Advances both clocks, in milliseconds. */
  readonly advance: (ms: number) => void;
}

/** Creates a clock over the machine's own. */
const sleepingClock = (inner: Clock.Clock): SleepingClock => {
  let slept = 0;
  const millis = () => inner.currentTimeMillisUnsafe() + slept;
  const nanos = () => inner.currentTimeNanosUnsafe() + BigInt(slept) * 1_000_000n;
  const steadyNanos = () => inner.monotonicTimeNanosUnsafe() + BigInt(slept) * 1_000_000n;
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeNanosUnsafe: nanos,
    monotonicTimeNanosUnsafe: steadyNanos,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanos: Effect.sync(steadyNanos),
    sleep: (duration) => inner.sleep(duration),
    advance: (ms) => {
      slept += ms;
    },
  };
};
