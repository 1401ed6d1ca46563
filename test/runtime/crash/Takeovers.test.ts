/**
 * Ownership of runs with a slow store: a run that is taken up during a close, after pending writes, and one that is refused while the
 * store is away. A run never has two drivers, and no process holds a run that it does not drive (L6, L11).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

type Recorder = RunRecorder["Service"];

const away = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "r", message: "the store is away" }));

/** A store in memory with calls that the test can hold or refuse, and a process over it. */
const bench = (answer: Choice | "parked" = "parked") =>
  Effect.gen(function* () {
    const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
    const store: { -readonly [K in keyof Recorder]?: Recorder[K] } = {};
    const recorder: Recorder = {
      ...memory,
      durable: true,
      digest: (content) => Effect.succeed(`digest of ${content}`),
      write: (runId, entries) => (store.write ?? memory.write)(runId, entries),
      claim: (runId) => (store.claim ?? memory.claim)(runId),
      release: (runId) => (store.release ?? memory.release)(runId),
      answer: (given) => (store.answer ?? memory.answer)(given),
      run: (runId) => (store.run ?? memory.run)(runId),
    };
    const scope = Scope.makeUnsafe();
    const services = yield* Layer.buildWithScope(
      Layer.fresh(StreamProcessor.layer).pipe(
        Layer.provide(Layer.succeed(RunRecorder, recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed(answer) })),
      ),
      scope,
    );
    const processor = Context.get(services, StreamProcessor);
    const provider = S.scripted([S.text("a"), S.reset], [S.text("b"), S.done]);
    const request = S.options(provider, { transcript: "t" });
    const begin = Effect.forkChild(S.watch(processor.run({ ...request, runId: "r" })), { startImmediately: true });
    const resume = Effect.forkChild(S.watch(processor.takeUp("r", { request, transcript: "t" })), {
      startImmediately: true,
    });
    const goOn = S.watch(processor.takeUp("r", { request, transcript: "t" }));
    return {
      memory,
      store,
      scope,
      processor,
      begin,
      resume,
      goOn,
      attempts: provider.attempts,
      record: memory.run("r"),
    };
  });

const refusal = (fiber: Fiber.Fiber<S.Seen>) => Effect.map(Fiber.join(fiber), ({ exit }) => S.errorOf(exit)?.message);

describe("A run that is taken up during a close", () => {
  for (const slow of ["claim", "write"] as const) {
    it.effect(`starts nothing in a closed processor and releases the run: its ${slow} took long`, () =>
      Effect.gen(function* () {
        const it = yield* bench();
        yield* Fiber.join(yield* it.begin);
        const late = Effect.sleep("2 seconds");
        if (slow === "claim") it.store.claim = (runId) => Effect.andThen(late, it.memory.claim(runId));
        else it.store.write = (runId, entries) => Effect.andThen(late, it.memory.write(runId, entries));
        const resumed = yield* it.resume;
        const closing = yield* Effect.forkChild(Scope.close(it.scope, Exit.void), { startImmediately: true });
        yield* TestClock.adjust("10 seconds");
        yield* Fiber.join(closing);
        assert.match((yield* refusal(resumed)) ?? "", /closed/);
        assert.lengthOf(it.attempts, 1);
        assert.strictEqual((yield* it.record)?.state, "asking");
        assert.strictEqual((yield* it.memory.claim("r")).run_id, "r", "no process drives it");
      }).pipe(Effect.scoped),
    );
  }
});

describe("A run that is taken up while the store is away", () => {
  it.effect("is refused while the entry that the run is parked waits, which would later park a run with an owner", () =>
    Effect.gen(function* () {
      const it = yield* bench();
      // The entry is stored, and its writer does not learn of it.
      it.store.write = (runId, entries) =>
        entries.some(({ _tag }) => _tag === "RunParked")
          ? Effect.andThen(it.memory.write(runId, entries), away)
          : it.memory.write(runId, entries);
      const begun = yield* it.begin;
      yield* TestClock.adjust("1 minute");
      yield* Fiber.join(begun);
      const resumed = yield* it.resume;
      yield* TestClock.adjust(1);
      assert.match((yield* refusal(resumed)) ?? "", /not on record yet/);
      it.store.write = it.memory.write;
      yield* TestClock.adjust("2 minutes");
      assert.strictEqual((yield* it.memory.claim("r")).parked, "question");
    }).pipe(Effect.scoped),
  );

  it.effect("is released once the store is back: a living process holds no run that it does not drive", () =>
    Effect.gen(function* () {
      const it = yield* bench();
      yield* Fiber.join(yield* it.begin);
      it.store.write = () => away;
      it.store.release = () => away;
      const resumed = yield* it.resume;
      yield* TestClock.adjust("10 seconds");
      assert.match((yield* refusal(resumed)) ?? "", /could not be recorded/);
      assert.isTrue(Exit.isFailure(yield* Effect.exit(it.memory.claim("r"))));
      delete it.store.write;
      delete it.store.release;
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* it.memory.claim("r")).run_id, "r");
    }).pipe(Effect.scoped),
  );

  it.effect("is released before it is taken up here again, and only once", () =>
    Effect.gen(function* () {
      const it = yield* bench();
      yield* Fiber.join(yield* it.begin);
      it.store.write = () => away;
      it.store.release = () => away;
      const refused = yield* it.resume;
      yield* TestClock.adjust("10 seconds");
      yield* Fiber.join(refused);
      delete it.store.write;
      let releases = 0;
      it.store.release = (runId) =>
        Effect.suspend(() => {
          releases += 1;
          return it.memory.release(runId);
        });
      yield* it.memory.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const resumed = yield* it.resume;
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(resumed)).lines.at(-1), "completed");
      assert.strictEqual(releases, 1);
    }).pipe(Effect.scoped),
  );
});

describe("An answer that is given while the store is away", () => {
  it.effect("is not carried out if another one turns out to be on record", () =>
    Effect.gen(function* () {
      const it = yield* bench("retry");
      // A person has answered elsewhere, and this process can neither write nor read until the store is back.
      it.store.answer = (given) =>
        Effect.andThen(Effect.orDie(it.memory.answer({ ...given, choice: "stop", by: "person" })), () => {
          delete it.store.answer;
          it.store.write = () => away;
          it.store.run = () => away;
          return away;
        });
      const begun = yield* it.begin;
      yield* TestClock.adjust("1 second");
      delete it.store.write;
      delete it.store.run;
      yield* TestClock.adjust("1 minute");
      const { lines } = yield* Fiber.join(begun);
      assert.deepStrictEqual(lines.slice(-2), ["answer stop", "end stopped text_shown"]);
      assert.lengthOf(it.attempts, 1);
    }).pipe(Effect.scoped),
  );

  it.effect("is carried out once the store has accepted it, and not if it never does", () =>
    Effect.gen(function* () {
      for (const backAfter of [1_000, 60_000]) {
        const it = yield* bench("retry");
        it.store.answer = () => {
          delete it.store.answer;
          it.store.write = () => away;
          it.store.run = () => away;
          return away;
        };
        const begun = yield* it.begin;
        yield* TestClock.adjust(backAfter);
        delete it.store.write;
        delete it.store.run;
        yield* TestClock.adjust("1 minute");
        const { lines } = yield* Fiber.join(begun);
        assert.strictEqual(lines.at(-1), backAfter === 1_000 ? "completed" : "end record_failed text_shown");
      }
    }).pipe(Effect.scoped),
  );
});

describe("takeUp", () => {
  it.effect("of a run that this process owns is refused before the store is called", () =>
    Effect.gen(function* () {
      const it = yield* bench();
      it.store.write = (runId, entries) => Effect.andThen(Effect.sleep("2 seconds"), it.memory.write(runId, entries));
      const begun = yield* it.begin;
      let claims = 0;
      it.store.claim = (runId) =>
        Effect.suspend(() => {
          claims += 1;
          return it.memory.claim(runId);
        });
      const resumed = yield* it.resume;
      yield* TestClock.adjust(1);
      const isRefused = resumed.pollUnsafe() !== undefined;
      yield* TestClock.adjust("1 minute");
      assert.match((yield* Fiber.join(begun)).lines.at(-1) ?? "", /^end parked/);
      assert.match((yield* refusal(resumed)) ?? "", /which is live/);
      assert.isTrue(isRefused);
      assert.strictEqual(claims, 0);
    }).pipe(Effect.scoped),
  );

  it.effect("carries out the answer to a parked run", () =>
    Effect.gen(function* () {
      const it = yield* bench();
      yield* Fiber.join(yield* it.begin);
      yield* it.memory.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const { lines } = yield* it.goOn;
      assert.deepStrictEqual(lines, [
        "answer retry",
        "discard 1 after 0",
        "attempt 2 replay",
        "b",
        "done",
        "completed",
      ]);
      assert.strictEqual((yield* it.record)?.state, "ended");
    }).pipe(Effect.scoped),
  );
});
