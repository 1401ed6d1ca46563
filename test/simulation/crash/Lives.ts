/**
 * Plays a story: each process drives the run until it dies, another one may recover between them, and the last ones continue it
 * to its end. It has memory, virtual time and a world that survives the processes.
 */
import { Clock, Context, Deferred, Effect, type Exit, Fiber, Layer, Random, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { mortalClock } from "../../runtime/crash/MortalClock.ts";
import * as S from "../../runtime/Scripted.ts";
import { Dice } from "../Dice.ts";
import { begin, type Process, providerOf, type Recorder, read, runId, toolsOf, type World } from "./Playing.ts";
import type { Death, Story } from "./Story.ts";

/** The outcome of a story. */
export interface Lived {
  readonly world: World;
  readonly record: RunRecord | undefined;
  readonly exit: Exit.Exit<void, RunInterrupted> | undefined;
  readonly deaths: number;
}

const transcript = "what the user asked";

/** Maximum processes that try to finish a run before it counts as endless. */
const lastLivesMax = 12;

/** Plays a story. */
export const live = (story: Story): Effect.Effect<Lived, never, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = {
      ...(yield* RunRecorder),
      durable: true,
      digest: (content: string) => Effect.succeed(`digest of ${content}`),
    };
    const dice = new Dice(story.seed ^ 0x5eed);
    const world = begin(story);
    let deaths = 0;
    let exit: Exit.Exit<void, RunInterrupted> | undefined;
    for (let life = 0; life < story.deaths.length + lastLivesMax; life += 1) {
      const death = story.deaths[life];
      const before = yield* read(recorder);
      if (life > 0 && (before === undefined || before.state === "ended" || world.completed)) break;
      const process = yield* startProcess(recorder, world, dice, death, life === 0);
      world.log.push(`life ${life} ${JSON.stringify(death ?? "last")}`);
      exit = yield* lifeOf(process, world, recorder, dice, death, life === 0);
      if (process.isDead()) deaths += 1;
      yield* judgeMoment(world, recorder);
      yield* process.silence;
      yield* Effect.orDie(recorder.release(runId));
      const recovery = story.recoveries[life];
      if (recovery !== undefined) yield* recovered(recorder, world, dice, recovery.dies);
    }
    return { world, record: yield* read(recorder), exit, deaths };
  });

const startProcess = (
  recorder: Recorder,
  world: World,
  dice: Dice,
  death: Death | undefined,
  first: boolean,
): Effect.Effect<Process> =>
  Effect.gen(function* () {
    const dead = Deferred.makeUnsafe<void>();
    const mortal = dying(recorder, world, dead, death, first);
    const decisions: UserDecisions["Service"] = {
      ask: ({ choices }) =>
        Effect.suspend(() => {
          if (Deferred.isDoneUnsafe(dead)) return Effect.never;
          if (death !== undefined && dice.chance(0.2)) return Effect.succeed("parked" as const);
          const choice = chosen(dice, choices, death === undefined);
          world.answers.push(choice);
          return Effect.as(Effect.sleep(dice.between(0, 50)), choice);
        }),
    };
    const clock = yield* mortalClock(dead);
    const context = yield* Layer.buildWithScope(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.succeed(RunRecorder, mortal)),
        Layer.provide(Layer.succeed(UserDecisions, decisions)),
        Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
      ),
      Scope.makeUnsafe(),
    ).pipe(Effect.provideService(Clock.Clock, clock));
    return {
      context,
      clock,
      isDead: () => Deferred.isDoneUnsafe(dead),
      silence: Effect.asVoid(Deferred.succeed(dead, undefined)),
    };
  });

/** Draws an answer. A person who is asked repeatedly eventually stops the run. */
const chosen = (dice: Dice, choices: ReadonlyArray<Choice>, last: boolean): Choice => {
  if (last && dice.chance(0.4)) return "stop";
  return choices[dice.between(0, choices.length - 1)] ?? "stop";
};

/** The recorder of a process that dies at a write and whose store refuses some writes. */
const dying = (
  recorder: Recorder,
  world: World,
  dead: Deferred.Deferred<void>,
  death: Death | undefined,
  first: boolean,
): Recorder => {
  let writes = 0;
  const write: Recorder["write"] = (id, entries) =>
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(dead)) return Effect.never;
      writes += 1;
      if (first && world.story.refusedWrites.includes(writes)) {
        world.refusals += 1;
        world.log.push(`refused write ${writes} ${entries.map((it) => it._tag).join(" ")}`);
        return Effect.fail(new RecorderError({ reason: "disk_full", run_id: id, message: "no room" }));
      }
      const made = Effect.tap(recorder.write(id, entries), () =>
        Effect.sync(
          () =>
            void world.log.push(
              `write ${entries
                .map((it) => it._tag)
                .filter((it) => it !== "EvidenceNoted")
                .join(" ")}`,
            ),
        ),
      );
      if (death?.kind !== "kill" || writes !== death.at) return made;
      const stop = Effect.andThen(Deferred.succeed(dead, undefined), Effect.never);
      return death.side === "before" ? stop : Effect.andThen(made, stop);
    });
  const alive = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => (Deferred.isDoneUnsafe(dead) ? Effect.never : effect));
  return { ...recorder, write, answer: (given) => alive(recorder.answer(given)), run: (id) => alive(recorder.run(id)) };
};

const lifeOf = (
  process: Process,
  world: World,
  recorder: Recorder,
  dice: Dice,
  death: Death | undefined,
  first: boolean,
): Effect.Effect<Exit.Exit<void, RunInterrupted> | undefined> =>
  Effect.gen(function* () {
    const { story } = world;
    const processor = Context.get(process.context, StreamProcessor);
    const tools = toolsOf(process, world);
    const request = S.options(providerOf(process, world, recorder), {
      tools: [tools.tool],
      canContinue: story.canContinue,
      continueText: story.continueText,
      reveal: story.reveal,
      discardable: story.discardable,
      ...(story.cursors ? { cursor: (part) => (/^[tcr]\d/.test(part.name) ? part.name : undefined) } : {}),
    });
    const cursor = story.cursors && dice.chance(0.5) ? yield* cursorOf(world, recorder) : undefined;
    if (!first && cursor !== undefined) world.log.push(`resumes at ${cursor}`);
    const stream = first
      ? processor.run({ ...request, runId, transcript })
      : processor.takeUp(runId, { request, transcript, ...(cursor === undefined ? {} : { cursor }) });
    const driven = Effect.provideService(drive(process, world, tools.start, stream), Clock.Clock, process.clock);
    const fiber = yield* Effect.forkDetach(driven, { startImmediately: true });
    if (death !== undefined && death.kind !== "kill") {
      yield* TestClock.adjust(death.afterMs);
      if (death.kind === "cancel") yield* processor.cancel(runId);
      if (death.kind === "close") yield* Effect.forkDetach(processor.close("the program ends"));
      if (death.kind === "interrupt") yield* Effect.forkDetach(Fiber.interrupt(fiber));
    }
    yield* TestClock.adjust("2 hours");
    return fiber.pollUnsafe();
  });

/** The cursor of the last part that the caller has kept, if it is part of the last response. */
const cursorOf = (world: World, recorder: Recorder): Effect.Effect<string | undefined> =>
  Effect.map(read(recorder), (record) => {
    const last = world.screen.findLast(({ name }) => /^[tcr]\d/.test(name));
    const response = record?.attempts.findLast((it) => it.request !== "resume")?.attempt ?? 0;
    return last !== undefined && last.attempt >= response ? last.name : undefined;
  });

const drive = (
  process: Process,
  world: World,
  start: (event: Extract<RunEvent<S.ScriptedPart>, { readonly _tag: "Part" }>) => Effect.Effect<void>,
  stream: Stream.Stream<RunEvent<S.ScriptedPart>, RunInterrupted>,
): Effect.Effect<void, RunInterrupted> =>
  Stream.runForEach(stream, (event) => {
    if (process.isDead()) return Effect.never;
    world.log.push(S.line(event));
    if (event._tag === "RunCompleted") world.completed = true;
    if (event._tag === "AttemptDiscarded") {
      const own = world.screen.filter((it) => it.attempt === event.attempt);
      if (own.length > event.keep_through && !world.story.discardable && own.some(({ name }) => name !== "start")) {
        world.problems.push("what cannot be discarded was withdrawn");
      }
      const kept = new Set(own.slice(0, event.keep_through));
      world.screen.splice(
        0,
        world.screen.length,
        ...world.screen.filter((it) => it.attempt !== event.attempt || kept.has(it)),
      );
      return Effect.void;
    }
    if (event._tag !== "Part") return Effect.void;
    world.screen.push({ attempt: event.attempt, name: event.part.name });
    return start(event);
  });

/** Judges a moment between two processes: everything that was seen is on record. */
const judgeMoment = (world: World, recorder: Recorder): Effect.Effect<void> =>
  Effect.map(read(recorder), (record) => {
    if (world.refusals > 0) return;
    for (const { attempt, name } of world.screen) {
      if (name === "start" || name === "done") continue;
      const facts = record?.attempts.find((it) => it.attempt === attempt)?.facts;
      const known = name.startsWith("c")
        ? (facts?.tools.length ?? 0) > 0
        : facts?.shown === "text" || (name.startsWith("r") && facts?.shown === "reasoning");
      if (!known) world.problems.push(`${name} of attempt ${attempt} was seen and is not on record`);
    }
  });

/** Lets another process recover and its person answer; it may die at a write. */
const recovered = (recorder: Recorder, world: World, dice: Dice, dies: number | undefined): Effect.Effect<void> =>
  Effect.gen(function* () {
    const dead = Deferred.makeUnsafe<void>();
    const death =
      dies === undefined
        ? undefined
        : ({ kind: "kill", at: dies, side: dice.pick(["before", "after"] as const) } as const);
    const mortal = dying(recorder, world, dead, death, false);
    world.log.push("recovery");
    const work = Effect.gen(function* () {
      yield* CrashRecovery.recover();
      const record = yield* mortal.run(runId);
      const question = record?.questions.at(-1);
      if (record?.state !== "asking" || question === undefined || dice.chance(0.3)) return;
      const choice = chosen(dice, question.choices, false);
      world.answers.push(choice);
      world.log.push(`a person answers ${choice}`);
      yield* Effect.ignore(CrashRecovery.answer({ run_id: runId, revision: question.revision, choice, by: "person" }));
    });
    const working = Effect.orDie(work).pipe(
      Effect.provideService(RunRecorder, mortal),
      Effect.provideService(Clock.Clock, yield* mortalClock(dead)),
    );
    yield* Effect.forkDetach(working, { startImmediately: true });
    yield* TestClock.adjust("1 minute");
    yield* Deferred.succeed(dead, undefined);
    yield* Effect.orDie(recorder.release(runId));
  });
