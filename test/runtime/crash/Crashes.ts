/**
 * Kills a process between any two steps of a run, and continues the run in a new one: two processors with one recorder. The first
 * stops at a chosen write, before or after it.
 */
import { Clock, Context, Deferred, Effect, Exit, Layer, Random, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { mortalClock } from "./MortalClock.ts";

/** Everything that survives the processes of a run: what its user saw, and what its tool did. */
export interface World {
  /** Parts on screen, by attempt. */
  readonly screen: Array<{ readonly attempt: number; readonly name: string }>;
  /** Handlers that were started, and those that have ended. */
  started: number;
  finished: number;
}

export const world = (): World => ({ screen: [], started: 0, finished: 0 });

/** The parts that the user sees, without the scripted frame. */
export const onScreen = ({ screen }: World): ReadonlyArray<string> =>
  screen.map(({ name }) => name).filter((name) => name !== "start" && name !== "done" && !name.startsWith("bash:"));

/** The stop of the first process at its n-th write, which is made or not. */
export interface Crash {
  readonly at: number;
  readonly side: "before" | "after";
}

/** The recorder of a process that stops at a write. */
const dying = (recorder: RunRecorder["Service"], crash: Crash, dead: Deferred.Deferred<void>) => {
  let writes = 0;
  const write: RunRecorder["Service"]["write"] = (runId, entries) =>
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(dead)) return Effect.never;
      writes += 1;
      if (writes !== crash.at) return recorder.write(runId, entries);
      const stop = Effect.andThen(Deferred.succeed(dead, undefined), Effect.never);
      return crash.side === "before" ? stop : Effect.andThen(recorder.write(runId, entries), stop);
    });
  return { ...recorder, write, writes: () => writes };
};

type Process = Context.Context<StreamProcessor | ToolGuard>;

/** Starts a process. Its layers are never closed, because a killed process closes nothing. */
const startProcess = (recorder: RunRecorder["Service"], decisions: UserDecisions["Service"]): Effect.Effect<Process> =>
  Layer.buildWithScope(
    StreamProcessor.layer.pipe(
      Layer.provide(Layer.succeed(RunRecorder, recorder)),
      Layer.provide(Layer.succeed(UserDecisions, decisions)),
      Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
    ),
    Scope.makeUnsafe(),
  );

export interface Scenario {
  readonly scripts: ReadonlyArray<ReadonlyArray<S.Step>>;
  readonly more?: S.More;
  readonly verify?: ToolGuard.Verify;
  readonly answer?: (rule: string, choices: ReadonlyArray<Choice>) => Choice;
}

const runId = "r";
export const transcript = "what the user asked";

/** The runtime: runs its tool for each whole call before it takes the next event, and collects what it saw. */
const drive = (
  seen: World,
  bash: GuardedTool<string, string, never, never>,
  stream: Stream.Stream<RunEvent<S.ScriptedPart>, RunInterrupted>,
  dead: Deferred.Deferred<void> | undefined,
) =>
  Stream.runForEach(stream, (event) => {
    // A dead process sees no further event.
    if (dead !== undefined && Deferred.isDoneUnsafe(dead)) return Effect.never;
    if (event._tag === "AttemptDiscarded") {
      const kept = seen.screen.filter((it) => it.attempt !== event.attempt);
      const own = seen.screen.filter((it) => it.attempt === event.attempt).slice(0, event.keep_through);
      seen.screen.splice(0, seen.screen.length, ...kept, ...own);
      return Effect.void;
    }
    if (event._tag !== "Part") return Effect.void;
    seen.screen.push({ attempt: event.attempt, name: event.part.name });
    return Effect.forEach(event.calls ?? [], (call) => Effect.ignore(bash.run(call, call.input ?? "")), {
      discard: true,
    });
  });

/** The outcome of a run over two processes. */
export interface Lived {
  readonly world: World;
  /** The record when the first process had died. */
  readonly left: RunRecord | undefined;
  readonly record: RunRecord;
  readonly exit: Exit.Exit<void, RunInterrupted>;
  /** Writes that the first process made until it died or ended. */
  readonly writes: number;
  readonly died: boolean;
  readonly asked: ReadonlyArray<string>;
}

/** Plays a run: the first process dies at `crash`, and the second one resumes it. */
export const live = (scenario: Scenario, crash: Crash): Effect.Effect<Lived, never, RunRecorder> =>
  Effect.gen(function* () {
    // The real digest is a promise, which no virtual clock waits for.
    const recorder = { ...(yield* RunRecorder), digest: (content: string) => Effect.succeed(`digest of ${content}`) };
    const seen = world();
    const asked: Array<string> = [];
    const decisions: UserDecisions["Service"] = {
      ask: ({ choices, rule }) =>
        Effect.sync(() => {
          asked.push(rule);
          return scenario.answer?.(rule, choices) ?? "stop";
        }),
    };
    const dead = Deferred.makeUnsafe<void>();
    const mortal = dying(recorder, crash, dead);
    const clock = yield* mortalClock(dead);
    const first = yield* Effect.provideService(startProcess(mortal, decisions), Clock.Clock, clock);
    const provider = S.scripted(...scenario.scripts);
    const bash = toolOf(first, seen, dead, scenario.verify);
    const run = Context.get(first, StreamProcessor).run(
      S.options(provider, { ...scenario.more, runId, transcript, tools: [bash] }),
    );
    yield* Effect.forkDetach(Effect.provideService(drive(seen, bash, run, dead), Clock.Clock, clock), {
      startImmediately: true,
    });
    yield* TestClock.adjust("1 hour");
    const left = yield* Effect.orDie(recorder.run(runId));
    yield* recorder.release(runId).pipe(Effect.orDie);
    const second = yield* startProcess(recorder, decisions);
    const again = answering(scenario);
    const tool = toolOf(second, seen, undefined, scenario.verify);
    const options = S.options(again, { ...scenario.more, tools: [tool] });
    const resumed = Context.get(second, StreamProcessor).takeUp(runId, { request: options, transcript });
    const fiber = yield* Effect.forkDetach(drive(seen, tool, resumed, undefined), {
      startImmediately: true,
    });
    yield* TestClock.adjust("1 hour");
    const exit = fiber.pollUnsafe();
    const record = yield* S.recordOf(runId).pipe(Effect.catchDefect(() => Effect.succeed(nothing)));
    return {
      world: seen,
      left,
      record,
      exit: exit === undefined ? Exit.die(new Error("the resumed stream has not ended")) : exit,
      writes: mortal.writes(),
      died: Deferred.isDoneUnsafe(dead),
      asked,
    };
  });

/** The second process's provider. Asked from the start, it repeats its answer, calls its tool, and completes. */
const answering = ({ scripts }: Scenario) => {
  const [first = []] = scripts;
  const again = [...first.filter((step) => "part" in step && step !== S.done), S.done];
  const continued = [S.start, S.text("c"), S.done];
  return {
    attempt: (context: AttemptContext) =>
      S.scripted(context.request === "continue" ? continued : again).attempt(context),
  };
};

const toolOf = (
  process: Process,
  seen: World,
  dead: Deferred.Deferred<void> | undefined,
  verify: ToolGuard.Verify | undefined,
): GuardedTool<string, string, never, never> =>
  Context.get(process, ToolGuard).mutating(
    "bash",
    () =>
      Effect.suspend(() => {
        if (dead !== undefined && Deferred.isDoneUnsafe(dead)) return Effect.never;
        seen.started += 1;
        seen.finished += 1;
        return Effect.succeed("done");
      }),
    verify === undefined ? {} : { verify },
  );

/** The record of a run before any process has written it. */
const nothing: RunRecord = {
  run_id: runId,
  provider: { id: "scripted" },
  started_at: 0,
  state: "ended",
  resumes: 0,
  attempts: [],
  attempts_omitted: 0,
  calls: [],
  evidence: { first: [], last: [], omitted: 0 },
  incidents: [],
  incidents_omitted: 0,
  questions: [],
};
