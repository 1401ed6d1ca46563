/**
 * Plays a story of two processes at once over one SQLite file, under virtual time. Each has its own recorder, lease and clock; a
 * person answers through either of them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Clock, Context, Effect, Exit, Layer, Random, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../../runtime/Scripted.ts";
import { begin, type Process, providerOf, type Recorder, responseOf, runId, type World } from "./Playing.ts";
import { ProcessClock } from "./ProcessClock.ts";
import type { Twin, TwinStory } from "./TwinStory.ts";

/** An act of a process, at a virtual millisecond. */
export interface Deed {
  readonly at: number;
  readonly who: 0 | 1;
  /** `reaches`: one of its writes reaches the store, so it can learn that it has lost the run. */
  readonly what:
    | "reaches"
    | "opens"
    | "starts"
    | "returns"
    | "completes"
    | "claims"
    | "claims_parked"
    | "is_told_taken_over";
  /** The call, if the act concerns one. */
  readonly name: string;
}

/** The outcome of a story of two processes. */
export interface TwinsLived {
  readonly story: TwinStory;
  readonly world: World;
  readonly deeds: ReadonlyArray<Deed>;
  readonly record: RunRecord | undefined;
  readonly problems: ReadonlyArray<string>;
}

/** Virtual milliseconds in which faults may happen. After them both processes run without faults. */
const troubleMs = 240_000;

/** Virtual milliseconds of the last phase, in which the person answers every open question with stop. */
const restMs = 900_000;

/** Interval at which a process looks for runs after the faults, in milliseconds. */
const calmLooksEvery = 60_000;

const transcript = "what the user asked";

/** Everything that both processes share. */
interface Stage {
  readonly story: TwinStory;
  readonly world: World;
  readonly file: string;
  readonly now: () => number;
  readonly deed: (who: 0 | 1, what: Deed["what"], name?: string) => void;
  /** Called when a write reaches the store. */
  readonly reach: (who: 0 | 1) => void;
  readonly isAway: () => boolean;
}

interface Actor {
  readonly who: 0 | 1;
  readonly twin: Twin;
  readonly clock: ProcessClock;
  readonly recorder: Recorder;
  readonly context: Context.Context<StreamProcessor | ToolGuard>;
  driving: boolean;
}

/** Plays a story of two processes. */
export const liveTwins = (story: TwinStory): Effect.Effect<TwinsLived> =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "twins-"));
    const inner = yield* Clock.Clock;
    const world = begin(story.run);
    const now = () => inner.currentTimeMillisUnsafe() - epochMs;
    yield* TestClock.setTime(epochMs);
    const deeds: Array<Deed> = [];
    const stage: Stage = {
      story,
      world,
      file: join(folder, "runs.db"),
      now,
      deed: (who, what, name = "") => {
        deeds.push({ at: now(), who, what, name });
        world.log.push(`${now()} ${"AB"[who]} ${what} ${name}`);
      },
      reach: (who) => void deeds.push({ at: now(), who, what: "reaches", name: "" }),
      isAway: () => story.outages.some(({ at, ms }) => now() >= at && now() < at + ms),
    };
    const actors = [yield* actorOf(stage, 0, inner), yield* actorOf(stage, 1, inner)] as const;
    const [first, second] = actors;
    yield* Effect.forkDetach(begun(stage, first), { startImmediately: true });
    for (const actor of [first, second]) yield* Effect.forkDetach(looking(stage, actor));
    for (const answer of story.answers) yield* Effect.forkDetach(answered(stage, actors, answer));
    yield* TestClock.adjust(troubleMs);
    for (const { clock } of actors) clock.thaw();
    yield* Effect.forkDetach(persistent(stage, second));
    yield* TestClock.adjust(restMs);
    const record = yield* Effect.orDie(second.recorder.run(runId));
    rmSync(folder, { recursive: true, force: true });
    return { story, world, deeds, record, problems: world.problems };
  });

/** Late enough that a wall clock that is an hour slow is still after 1970. */
const epochMs = 1_760_000_000_000;

const actorOf = (stage: Stage, who: 0 | 1, inner: Clock.Clock): Effect.Effect<Actor> =>
  Effect.gen(function* () {
    const twin = stage.story.twins[who];
    const clock = new ProcessClock(inner, twin.clockOff);
    const sql = yield* Effect.orDie(
      Layer.buildWithScope(
        Layer.fresh(SqlRunRecorder.layerFile({ file: stage.file, retention: false, synchronous: "normal" })),
        Scope.makeUnsafe(),
      ).pipe(Effect.provideService(Clock.Clock, clock)),
    );
    const recorder = troubled(stage, who, clock, Context.get(sql, RunRecorder));
    const recording = Layer.succeed(RunRecorder, recorder);
    const context = yield* Layer.buildWithScope(
      StreamProcessor.layer.pipe(
        Layer.provide(UserDecisions.layerDurable({ parkAfterMs: 40_000, pollMs: 4_000 })),
        Layer.provide(recording),
        Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
      ),
      Scope.makeUnsafe(),
    ).pipe(Effect.provideService(Clock.Clock, clock));
    return { who, twin, clock, recorder, context, driving: false };
  });

/** The recorder of a process that freezes at some of its writes, over a store with outages. */
const troubled = (stage: Stage, who: 0 | 1, clock: ProcessClock, recorder: Recorder): Recorder => {
  let writes = 0;
  const gone = () => new RecorderError({ reason: "unavailable", run_id: runId, message: "simulated" });
  const reached = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | RecorderError> =>
    Effect.andThen(
      clock.running,
      Effect.suspend((): Effect.Effect<A, E | RecorderError> => (stage.isAway() ? Effect.fail(gone()) : effect)),
    );
  const stops = (ms: number | "for_ever") =>
    Effect.suspend(() => {
      clock.freeze();
      stage.world.log.push(`${stage.now()} ${"AB"[who]} stands still ${ms}`);
      const thaws = Effect.provideService(Effect.sleep(ms === "for_ever" ? troubleMs : ms), Clock.Clock, clock.inner);
      const thawed = Effect.andThen(
        thaws,
        Effect.sync(() => clock.thaw()),
      );
      return Effect.andThen(Effect.forkDetach(ms === "for_ever" ? Effect.never : thawed), clock.running);
    });
  const write: Recorder["write"] = (id, entries) =>
    Effect.suspend(() => {
      writes += 1;
      const calm = stage.now() >= troubleMs;
      const stop = calm ? undefined : stage.story.twins[who].stops.find((it) => it.write === writes);
      const made = reached(
        Effect.tap(
          Effect.andThen(
            Effect.sync(() => stage.reach(who)),
            recorder.write(id, entries),
          ),
          () =>
            Effect.sync(() => {
              const tags = entries.map(({ _tag }) => _tag).filter((it) => it !== "EvidenceNoted");
              stage.world.log.push(`${stage.now()} ${"AB"[who]} writes ${tags.join(" ")}`);
            }),
        ),
      );
      if (stop === undefined) return made;
      return stop.side === "before"
        ? Effect.andThen(stops(stop.ms), made)
        : Effect.andThen(Effect.ensuring(made, stops(stop.ms)), Effect.void);
    });
  return {
    ...recorder,
    write,
    run: (id) => reached(recorder.run(id)),
    runs: (query) => reached(recorder.runs(query)),
    orphans: (limit) => reached(recorder.orphans(limit)),
    answer: (given) => reached(recorder.answer(given)),
    // The store's own digest would run outside virtual time.
    digest: (content) => reached(Effect.succeed(`digest of ${content}`)),
    release: (id) => reached(recorder.release(id)),
    claim: (id) =>
      reached(
        Effect.tap(recorder.claim(id), (record) =>
          Effect.sync(() => stage.deed(who, record.parked === undefined ? "claims" : "claims_parked")),
        ),
      ),
  };
};

const inProcess = <A, E>(actor: Actor, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.provideService(effect, Clock.Clock, actor.clock);

const requestOf = (stage: Stage, actor: Actor) => {
  const { world } = stage;
  const process: Process = {
    context: actor.context,
    clock: actor.clock,
    isDead: () => false,
    silence: Effect.void,
  };
  const provider = providerOf(process, world, actor.recorder);
  const handler = (name: string) =>
    Effect.suspend(() => {
      world.started.push(name);
      stage.deed(actor.who, "starts", name);
      const [response = 0, item = 0] = name.slice(1).split(".").map(Number);
      const ms = responseOf(world, response)[item]?.handlerMs ?? 0;
      const rest = ms === 0 ? Effect.void : Effect.sleep(ms);
      return Effect.andThen(
        rest,
        Effect.sync(() => stage.deed(actor.who, "returns", name)),
      );
    });
  const tool = Context.get(actor.context, ToolGuard).mutating("bash", handler);
  const { canContinue, continueText, discardable, reveal } = world.story;
  const request = S.options(
    {
      attempt: (context) => {
        stage.deed(actor.who, "opens", String(context.attempt));
        return provider.attempt(context);
      },
    },
    { tools: [tool], canContinue, continueText, discardable, reveal },
  );
  return { request, tool };
};

/** Drives the stream that `open` returns, and notes when the process learns that it lost the run. */
const driven = (
  stage: Stage,
  actor: Actor,
  open: (
    request: ReturnType<typeof requestOf>["request"],
    processor: StreamProcessor["Service"],
  ) => Stream.Stream<RunEvent<S.ScriptedPart>, RunInterrupted>,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    actor.driving = true;
    const { request, tool } = requestOf(stage, actor);
    const stream = open(request, Context.get(actor.context, StreamProcessor));
    const consumed = Stream.runForEach(stream, (event) => {
      stage.world.log.push(`${stage.now()} ${"AB"[actor.who]} ${S.line(event)}`);
      if (event._tag === "RunCompleted") stage.deed(actor.who, "completes");
      if (event._tag !== "Part") return Effect.void;
      return Effect.forEach(event.calls ?? [], (call) => Effect.ignore(tool.run(call, event.part.name)), {
        discard: true,
      });
    });
    const exit = yield* Effect.exit(consumed);
    if (Exit.isFailure(exit)) {
      for (const reason of exit.cause.reasons) {
        if (reason._tag === "Die") stage.world.problems.push(`died: ${String(reason.defect)}`);
        if (reason._tag === "Fail" && reason.error.reason === "taken_over") stage.deed(actor.who, "is_told_taken_over");
      }
    }
    actor.driving = false;
  }).pipe((it) => inProcess(actor, it));

const begun = (stage: Stage, actor: Actor): Effect.Effect<void> =>
  driven(stage, actor, (request, processor) => processor.run({ ...request, runId, transcript }));

/** Repeatedly looks for runs that no process drives, and continues this one. */
const looking = (stage: Stage, actor: Actor): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { recorder, twin } = actor;
    while (stage.now() < troubleMs + restMs) {
      yield* Effect.sleep(stage.now() < troubleMs ? twin.looksEvery : calmLooksEvery);
      yield* Effect.ignore(Effect.provideService(CrashRecovery.recover(), RunRecorder, recorder));
      const record = yield* Effect.catch(recorder.run(runId), () => Effect.undefined);
      if (actor.driving || record === undefined || record.state === "ended") continue;
      const going = driven(stage, actor, (request, processor) => processor.takeUp(runId, { request, transcript }));
      yield* Effect.forkDetach(going, { startImmediately: true });
    }
  }).pipe((it) => inProcess(actor, it));

const answered = (
  stage: Stage,
  actors: readonly [Actor, Actor],
  { at, choice, revision, through }: TwinStory["answers"][number],
): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Effect.sleep(at);
    const given = CrashRecovery.answer({ run_id: runId, revision, choice, by: "person" });
    const exit = yield* Effect.exit(Effect.provideService(given, RunRecorder, actors[through].recorder));
    if (Exit.isFailure(exit)) return;
    stage.world.answers.push(choice);
    stage.world.log.push(`${stage.now()} a person answers ${choice} to ${revision}`);
  });

/** A person who stops every question that is still open after the faults. */
const persistent = (stage: Stage, { recorder }: Actor): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (stage.now() < troubleMs + restMs) {
      yield* Effect.sleep(60_000);
      const record = yield* Effect.catch(recorder.run(runId), () => Effect.undefined);
      const question = record?.questions.at(-1);
      if (record?.state !== "asking" || question === undefined) continue;
      const given = CrashRecovery.answer({ run_id: runId, revision: question.revision, choice: "stop", by: "person" });
      yield* Effect.ignore(Effect.provideService(given, RunRecorder, recorder));
    }
  });
