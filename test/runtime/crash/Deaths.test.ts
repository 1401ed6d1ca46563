/**
 * A process dies after any of its writes and is recovered. The recovery dies at any of its own writes and is recovered, too.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer, Random } from "effect";
import { TestClock } from "effect/testing";
import { canGrowInto } from "../../../src/facts/Growth.ts";
import * as Orphan from "../../../src/recorder/Orphan.ts";
import { openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { Dice } from "../../simulation/Dice.ts";
import { history } from "./Histories.ts";
import { type Life, lives, recorded, runId, written } from "./Lives.ts";

const seed = 20_261_122;

type Recorder = RunRecorder["Service"];

const even = Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 });

const inStore = <A, E>(effect: Effect.Effect<A, E, RunRecorder>) =>
  effect.pipe(Effect.provide(Layer.merge(Layer.fresh(RunRecorder.layerMemory()), even)));

/** Writes the first `writes` of a life and dies, so that its lease expires. */
const died = (recorder: Recorder, life: Life, writes: number) =>
  Effect.gen(function* () {
    yield* written(recorder, life, writes);
    yield* recorder.release(runId);
    return yield* read(recorder);
  });

const read = (recorder: Recorder) =>
  Effect.filterOrElse(
    recorder.run(runId),
    (record) => record !== undefined,
    () => Effect.die(new Error("the run is lost")),
  );

const recover = (recorder: Recorder) => CrashRecovery.recover().pipe(Effect.provideService(RunRecorder, recorder));

/** The death of a recovery at its n-th commit: the store fails before or after it, or the process stops there. */
const ways = ["fails before", "fails after", "stops before", "stops after"] as const;

const mortal = (
  recorder: Recorder,
  at: number,
  way: (typeof ways)[number],
  dead: Deferred.Deferred<void>,
): Recorder => {
  let commits = 0;
  const dying = <A, E>(commit: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      commits += 1;
      if (commits < at) return commit;
      const end = way.startsWith("fails")
        ? Effect.andThen(Deferred.succeed(dead, undefined), Effect.die(new Error("the process is gone")))
        : Effect.andThen(Deferred.succeed(dead, undefined), Effect.never);
      return commits > at || way.endsWith("before") ? end : Effect.andThen(commit, end);
    });
  return {
    ...recorder,
    write: (id, entries) => dying(recorder.write(id, entries)),
    answer: (given) => dying(recorder.answer(given)),
    // A dead process releases nothing: its lease expires.
    release: () => Effect.void,
  };
};

describe("After a crash between any two writes a run has an end, a question or an offer", () => {
  const holdsFor = (name: string, life: Life) =>
    Effect.gen(function* () {
      for (let writes = 1; writes <= life.length; writes += 1) {
        yield* inStore(
          Effect.gen(function* () {
            const recorder = yield* RunRecorder;
            const left = yield* died(recorder, life, writes);
            yield* recover(recorder);
            const record = yield* read(recorder);
            holds(left, record, `${name}, after write ${writes} of ${life.length}`);
            const again = yield* recover(recorder);
            assert.deepStrictEqual([again.runs, yield* read(recorder)], [[], record], `${name}: recovered twice`);
          }),
        );
      }
    });

  for (const [name, life] of Object.entries(lives)) {
    it.effect(name, () => Effect.andThen(TestClock.setTime(1_000), holdsFor(name, life)));
  }

  it.effect(`and after every write of generated runs; seed ${seed}`, () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000);
      for (let run = 0; run < 500; run += 1) yield* holdsFor(`seed ${seed + run}`, history(new Dice(seed + run)));
    }),
  );

  it.effect("and after every write of runs that the runtime recorded", () =>
    Effect.gen(function* () {
      for (const [name, life] of Object.entries(yield* recorded)) {
        assert.isAbove(life.length, 2, name);
        yield* holdsFor(name, life);
      }
    }),
  );
});

const holds = (left: RunRecord, record: RunRecord, where: string): void => {
  const due = Orphan.findDueStep(record);
  const seen = `${where}: ${record.state} ${record.parked} ${due?._tag}`;
  if (left.state === "ended") assert.deepStrictEqual(record, left, where);
  else if (record.state === "asking") {
    assert.deepStrictEqual([record.parked, due?._tag], ["question", "waiting"], seen);
    assert.isAtLeast(openQuestion(record)?.choices.length ?? 0, 2, seen);
  } else if (record.state === "parked") {
    assert.include(["recovered offered", "answered answered"], `${record.parked} ${due?._tag}`, seen);
  } else assert.strictEqual(record.state, "ended", seen);
  offersNothingUnsafe(record, seen);
  const ids = record.incidents.map(({ id }) => id);
  assert.deepStrictEqual([...new Set(ids)], ids, where);
  const revisions = record.questions.map(({ revision }) => revision);
  assert.deepStrictEqual([...new Set(revisions)], revisions, where);
  for (const before of left.attempts) {
    const after = record.attempts.find(({ attempt }) => attempt === before.attempt);
    assert.isTrue(
      after !== undefined && canGrowInto(before.facts, after.facts),
      `${where}: facts were taken back (L1)`,
    );
  }
  for (const { decision, id, policy, ...input } of record.incidents) {
    const decider = CrashRecovery.policyNamed(policy, []);
    assert.deepStrictEqual(decider?.decide(input), decision, `${where}: ${id} (L9)`);
  }
};

/** Checks that, after any decision, nothing restarts by itself over a call that may have run, or over content shown to the user. */
const offersNothingUnsafe = (record: RunRecord, where: string): void => {
  const due = Orphan.findDueStep(record);
  if (due?._tag !== "offered") return;
  const { mode } = due.incident.decision;
  assert.include(["replay", "continue"], mode, where);
  const [first, ...resumed] = Orphan.lastResponse(record);
  for (const { facts } of first === undefined ? [] : [first, ...resumed]) {
    const changing = facts.tools.filter(({ effect, executor }) => executor === "runtime" && effect !== "read_only");
    const phases = changing.map(({ phase }) => phase);
    assert.notInclude(phases, "dispatched", where);
    assert.notInclude(phases, "outcome_unknown", where);
    if (mode !== "replay") continue;
    assert.notInclude(phases, "settled", where);
    assert.notStrictEqual(facts.shown, "text", where);
  }
};

describe("A recovery that dies at any of its commits is recovered to the same result, and nothing is stored twice", () => {
  for (const [name, life] of Object.entries(lives)) it.effect(name, () => sameEnd(name, life));

  it.effect(`and for generated runs; seed ${seed}`, () =>
    Effect.forEach(
      Array.from({ length: 100 }, (_, run) => seed + run),
      (its) => sameEnd(`seed ${its}`, history(new Dice(its))),
      { discard: true },
    ),
  );
});

const sameEnd = (name: string, life: Life) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(1_000);
    const whole = yield* inStore(
      Effect.gen(function* () {
        const recorder = yield* RunRecorder;
        yield* died(recorder, life, life.length);
        yield* recover(recorder);
        return yield* read(recorder);
      }),
    );
    for (const way of ways) {
      for (let at = 1; at < 10; at += 1) {
        const { finished, record } = yield* inStore(diesAt(life, at, way));
        assert.deepStrictEqual(record, whole, `${name}: ${way} commit ${at}`);
        if (finished) break;
        assert.isBelow(at, 9, "it never comes to its end");
      }
    }
  });

const diesAt = (life: Life, at: number, way: (typeof ways)[number]) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    yield* died(recorder, life, life.length);
    const dead = yield* Deferred.make<void>();
    const fiber = yield* Effect.forkChild(Effect.exit(recover(mortal(recorder, at, way, dead))));
    yield* Effect.raceFirst(Deferred.await(dead), Effect.asVoid(Fiber.await(fiber)));
    const finished = !Deferred.isDoneUnsafe(dead);
    yield* Fiber.interrupt(fiber);
    if (!finished) {
      yield* recorder.release(runId);
      yield* recover(recorder);
    }
    return { finished, record: yield* read(recorder) };
  });
