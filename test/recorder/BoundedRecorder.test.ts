/** Every call of a recorder returns, whatever the store does: in time, with a RecorderError, and without leaving a run claimed (L11). */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Exit, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import { hangingCallsMax, probeMs, toBounded } from "../../src/recorder/BoundedRecorder.ts";
import { RecorderError, RunRecorder, recorderWaitMs } from "../../src/recorder/RunRecorder.ts";
import { inGroups, type Told } from "./Committing.ts";
import * as E from "./Entries.ts";
import * as MemoryFacts from "./shared/MemoryFacts.ts";

type Recorder = RunRecorder["Service"];

const memory = Effect.map(Layer.build(Layer.fresh(RunRecorder.layerMemory())), Context.get(RunRecorder));

/** Every recorder call that a run waits for. */
const calls: Readonly<Record<string, (recorder: Recorder) => Effect.Effect<unknown, unknown>>> = {
  write: (it) => it.write("r", [E.begun("r")]),
  run: (it) => it.run("r"),
  runs: (it) => it.runs(),
  incidents: (it) => it.incidents("r"),
  claim: (it) => it.claim("r"),
  release: (it) => it.release("r"),
  orphans: (it) => it.orphans(),
  answer: (it) => it.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" }),
  digest: (it) => it.digest("text"),
};

const ways: Readonly<Record<string, () => unknown>> = {
  hangs: () => Effect.never,
  "hangs and cannot be interrupted": () => Effect.uninterruptible(Effect.never),
  throws: () => {
    throw new Error("the driver threw");
  },
  dies: () => Effect.die(new Error("the driver died")),
  "interrupts itself": () => Effect.interrupt,
  "fails with an error of its own": () => Effect.fail({ code: "ECONNRESET" }),
  "gives a promise": () => Promise.resolve("r"),
  "gives nothing": () => undefined,
};

/** A recorder whose methods all are the given function, as untyped JavaScript may pass it. */
const that = (way: () => unknown): Recorder =>
  Object.fromEntries([...Object.keys(calls).map((name) => [name, way]), ["durable", true]]) as unknown as Recorder;

describe("A recorder of a store that processes share", () => {
  it.effect("bounds the facts that processes share, too: facts, notifications, and shared budgets", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
      const recorder = yield* memory;
      const cancels = { ...store.process(), findOwner: () => Effect.succeed("4711@host") };
      const its = toBounded({ ...recorder, shared: store.process(), cancels, pacing: store.process() });
      const other = store.process();
      const words: Array<string> = [];
      const ends = its.shared?.on(({ _tag }) => void words.push(_tag));
      yield* other.put("cooldown", "key", "value", 1_000);
      assert.deepStrictEqual(words, ["Put"]);
      assert.strictEqual((yield* its.shared?.find("cooldown", "key") ?? Effect.undefined)?.value, "value");
      const left = Effect.forEach(
        [its.shared, its.pacing],
        (it) => it?.draw("p", 1, { max: 4, perSecond: 1 }) ?? Effect.undefined,
      );
      assert.deepStrictEqual(yield* left, [3, 2]);
      assert.strictEqual(yield* its.cancels?.findOwner("r") ?? Effect.undefined, "4711@host");
      ends?.();
      store.say({ _tag: "Look" });
      assert.lengthOf(words, 1);
    }),
  );

  it.effect("has no shared facts if its store has none", () =>
    Effect.gen(function* () {
      const its = toBounded(yield* memory);
      assert.notProperty(its, "shared");
      assert.notProperty(its, "cancels");
      assert.notProperty(its, "pacing");
    }),
  );
});

describe("A recorder that misbehaves", () => {
  for (const [way, does] of Object.entries(ways)) {
    for (const [name, call] of Object.entries(calls)) {
      it.effect(`${way}: ${name} fails with a RecorderError`, () =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.flip(Effect.uninterruptible(call(toBounded(that(does))))));
          yield* TestClock.adjust("30 seconds");
          const error = yield* Fiber.join(fiber);
          assert.instanceOf(error, RecorderError);
          assert.deepInclude({ ...(error as RecorderError) }, { reason: "unavailable" });
          assert.include((error as RecorderError).message, `the recorder's ${name}`);
        }),
      );
    }
  }

  it.effect("returns invalid values: anything that is no record, no list or no text is a failure", () =>
    Effect.gen(function* () {
      const garbage = toBounded(that(() => Effect.succeed({ run_id: "r", attempts: "none" })));
      for (const name of ["run", "runs", "incidents", "claim", "orphans", "answer", "digest"]) {
        const exit = yield* Effect.exit(calls[name]?.(garbage) ?? Effect.void);
        assert.isTrue(Exit.isFailure(exit), name);
      }
    }),
  );

  it.effect("hangs: the whole wait is spent once, and again after a call has returned", () =>
    Effect.gen(function* () {
      let hangs = true;
      const it = yield* memory;
      const recorder = toBounded({ ...it, write: (id, entries) => (hangs ? Effect.never : it.write(id, entries)) });
      const within = (ms: number) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.exit(recorder.write("r", [E.begun("r")])));
          yield* TestClock.adjust(ms - 1);
          assert.isUndefined(fiber.pollUnsafe(), `${ms} ms are not over`);
          yield* TestClock.adjust(1);
          assert.isDefined(fiber.pollUnsafe(), `${ms} ms are over`);
        });
      yield* within(recorderWaitMs);
      yield* within(probeMs);
      hangs = false;
      yield* recorder.write("r", [E.begun("r")]);
      hangs = true;
      yield* within(recorderWaitMs);
    }).pipe(Effect.scoped),
  );

  it.effect("hung once and is slow since: it counts as slow, and its calls are not interrupted forever", () =>
    Effect.gen(function* () {
      let hangs = true;
      const recorder = toBounded({
        ...(yield* memory),
        write: () => (hangs ? Effect.never : Effect.sleep(probeMs * 2)),
      });
      const written = (ms: number) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.exit(recorder.write("r", [E.begun("r")])));
          yield* TestClock.adjust(ms);
          return Exit.isSuccess(yield* Fiber.join(fiber));
        });
      assert.isFalse(yield* written(recorderWaitMs));
      hangs = false;
      assert.isFalse(yield* written(probeMs));
      yield* TestClock.adjust(probeMs);
      assert.isTrue(yield* written(probeMs * 2));
    }).pipe(Effect.scoped),
  );

  it.effect("hangs: a call that its caller left early is interrupted at its own time limit", () =>
    Effect.gen(function* () {
      let interrupted = 0;
      const hanging = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          interrupted += 1;
        }),
      );
      const recorder = toBounded({ ...(yield* memory), write: () => hanging });
      const given = (ms: number) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.exit(recorder.write("r", [])));
          yield* TestClock.adjust(ms);
          assert.isDefined(fiber.pollUnsafe());
          return interrupted;
        });
      assert.strictEqual(yield* given(recorderWaitMs), 1);
      assert.strictEqual(yield* given(probeMs), 1);
      yield* TestClock.adjust(recorderWaitMs - probeMs);
      assert.strictEqual(interrupted, 2);
    }).pipe(Effect.scoped),
  );

  it.effect("cannot be interrupted: after a maximum of abandoned calls no further call is made", () =>
    Effect.gen(function* () {
      let made = 0;
      const recorder = toBounded({
        ...(yield* memory),
        write: () => {
          made += 1;
          return Effect.uninterruptible(Effect.never);
        },
      });
      for (let call = 0; call < hangingCallsMax + 10; call += 1) {
        const fiber = yield* Effect.forkChild(Effect.exit(recorder.write("r", [])));
        yield* TestClock.adjust(recorderWaitMs);
        assert.isDefined(fiber.pollUnsafe());
      }
      assert.strictEqual(made, hangingCallsMax);
    }).pipe(Effect.scoped),
  );

  it.effect("claims a run after its caller has left: the run is released", () =>
    Effect.gen(function* () {
      const it = yield* memory;
      yield* it.write("r", [E.begun("r")]);
      yield* it.release("r");
      const late = toBounded({ ...it, claim: (id) => Effect.andThen(Effect.sleep("1 minute"), it.claim(id)) });
      const fiber = yield* Effect.forkChild(Effect.exit(late.claim("r")));
      yield* TestClock.adjust("2 minutes");
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)));
      assert.strictEqual((yield* it.claim("r")).run_id, "r");
    }).pipe(Effect.scoped),
  );

  it.effect("may announce a longer timeout", () =>
    Effect.gen(function* () {
      const recorder = toBounded({ ...that(() => Effect.never), waitMs: 20_000 });
      const fiber = yield* Effect.forkChild(Effect.exit(recorder.run("r")));
      yield* TestClock.adjust(19_999);
      assert.isUndefined(fiber.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.isDefined(fiber.pollUnsafe());
    }),
  );
});

describe("A recorder that takes the writes of several runs together, and waits for a server", () => {
  /** The writes that a test requests, their results, and the store's reports. */
  const asking = Effect.gen(function* () {
    const tolds: Array<Told> = [];
    const heard: Array<string> = [];
    const store = inGroups(yield* memory, (_id, _entries, told) => tolds.push(told) > 0, "late");
    const services = yield* Effect.context<never>();
    const recorder = toBounded(store);
    const ask = () => recorder.commit("r", [], { services }, (why) => heard.push(why?.message ?? "on record"));
    return { ask, heard, recorder, tolds };
  }).pipe(Effect.scoped);
  const late = (ms: number) => `r: the recorder's write did not return within ${ms} ms`;

  it.effect(
    "reports each write in time: the whole wait is spent once, and again after the store has reported one",
    () =>
      Effect.gen(function* () {
        const { ask, heard, tolds } = yield* asking;
        ask();
        yield* TestClock.adjust(1_000);
        ask();
        yield* TestClock.adjust(recorderWaitMs - 1_001);
        assert.deepStrictEqual(heard, []);
        yield* TestClock.adjust(1);
        assert.deepStrictEqual(heard, [late(recorderWaitMs)]);
        // A later write is reported before the one that still has its whole wait.
        ask();
        yield* TestClock.adjust(probeMs);
        assert.deepStrictEqual(heard.slice(1), [late(probeMs)]);
        yield* TestClock.adjust(1_000 - probeMs);
        assert.deepStrictEqual(heard.slice(2), [late(recorderWaitMs)]);
        ask();
        tolds.at(-1)?.(true);
        ask();
        yield* TestClock.adjust(recorderWaitMs - 1);
        assert.deepStrictEqual(heard.slice(3), ["on record"]);
        yield* TestClock.adjust(1);
        assert.deepStrictEqual(heard.slice(4), [late(recorderWaitMs)]);
      }),
  );

  it.effect("hangs or recovers together with its single writes, because it is one store", () =>
    Effect.gen(function* () {
      const { ask, heard, recorder, tolds } = yield* asking;
      ask();
      yield* TestClock.adjust(recorderWaitMs);
      assert.lengthOf(heard, 1);
      yield* recorder.write("r", [E.begun("r")]);
      ask();
      yield* TestClock.adjust(probeMs);
      assert.lengthOf(heard, 1);
      tolds[1]?.(false, new RecorderError({ reason: "locked", run_id: "r", message: "locked" }));
      assert.deepStrictEqual(heard.slice(1), ["locked"]);
    }),
  );

  it.effect("reports no write twice, and accepts no more writes if too many hang, until one of them has returned", () =>
    Effect.gen(function* () {
      const { ask, heard, tolds } = yield* asking;
      for (let call = 0; call < hangingCallsMax; call += 1) ask();
      yield* TestClock.adjust(recorderWaitMs);
      assert.lengthOf(heard, hangingCallsMax);
      ask();
      assert.lengthOf(tolds, hangingCallsMax);
      assert.match(heard.at(-1) ?? "", /was not called: too many earlier calls are still hanging/);
      tolds[0]?.(true);
      ask();
      assert.lengthOf(tolds, hangingCallsMax + 1);
      assert.isFalse(heard.includes("on record"));
      tolds.at(-1)?.(true);
      assert.strictEqual(heard.at(-1), "on record");
    }),
  );
});
