/**
 * An id that is on record is never used for a new run: no request is sent and no tool starts, whichever process ran it before (L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit, Fiber, Layer, Random, type Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { turns } from "../../client/Attempt.ts";
import { emptyPath, open } from "../../recorder/sql/SqlFolder.ts";
import * as S from "../Scripted.ts";
import { faulty } from "./FaultyStore.ts";

type Recorder = RunRecorder["Service"];

/** A process over a store, with its provider requests and its tool runs. */
const processOver = (recorder: Recorder, random = 0.5) =>
  Effect.map(
    Layer.build(
      Layer.fresh(StreamProcessor.layer).pipe(
        Layer.provide(Layer.succeed(RunRecorder, recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed("parked" as const) })),
        Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => random, nextIntUnsafe: () => 0 })),
      ),
    ),
    (services) => {
      const processor = Context.get(services, StreamProcessor);
      const seen = { requests: 0, ran: 0 };
      const pay = Context.get(services, ToolGuard).mutating("pay", () =>
        Effect.sync(() => {
          seen.ran += 1;
        }),
      );
      const stream = (last: S.Step, runId?: string) => {
        const script = last === S.reset ? [S.callReady("pay"), S.wait(10), last] : [S.callReady("pay"), last];
        const attempt = () => {
          seen.requests += 1;
          return S.scripted(script).attempt({} as never);
        };
        const options = S.options(
          { attempt },
          { tools: [pay], transcript: "what the user asked", ...(runId === undefined ? {} : { runId }) },
        );
        return processor.run(options);
      };
      const watched = (it: ReturnType<typeof stream>) =>
        S.watch(it, (event) =>
          event._tag === "Part"
            ? Effect.forEach(event.calls ?? [], (call) => Effect.exit(pay.run(call, undefined)))
            : Effect.void,
        ).pipe(Effect.provideContext(services));
      return { processor, seen, stream, watched };
    },
  );

const refusedFor = (runId: string, { exit, lines }: S.Seen): void => {
  const error = S.errorOf(exit);
  assert.strictEqual(error?.reason, "refused");
  assert.include(error?.message, `runId: expected a new id, got "${runId}"`);
  assert.match(error?.message ?? "", /Use a new id|which is live/);
  assert.deepStrictEqual(lines, ["end refused not_retryable"]);
};

const memory = Effect.map(Layer.build(Layer.fresh(RunRecorder.layerMemory())), Context.get(RunRecorder));

const sql = Effect.flatMap(emptyPath, (file) => open({ file }));

const stores: Readonly<Record<string, Effect.Effect<Recorder, RecorderError, Scope.Scope>>> = { memory, sql };

/**
 * Lets five seconds pass, and then as many turns of the event loop as needed: a thread of Node makes the digest, and a busy machine
 * delays it.
 */
const until = <E>(holds: Effect.Effect<boolean, E>) =>
  Effect.gen(function* () {
    for (let turn = 0; !(yield* holds); turn += 1) {
      if (turn < 500) yield* TestClock.adjust(10);
      yield* turns(1);
    }
  });

describe("An id that a file cannot store", () => {
  it.effect("is refused by name before any request is sent, and another id runs", () =>
    Effect.gen(function* () {
      const { seen, stream, watched } = yield* processOver(yield* sql);
      const { exit, lines } = yield* watched(stream(S.done, "r\ud83d"));
      assert.strictEqual(S.errorOf(exit)?.reason, "refused");
      assert.match(S.errorOf(exit)?.message ?? "", /runId: expected an id without NUL .*got "r\\ud83d"/);
      assert.deepStrictEqual(lines, ["end refused not_retryable"]);
      assert.deepStrictEqual(seen, { requests: 0, ran: 0 });
      assert.isTrue(Exit.isSuccess((yield* watched(stream(S.done, "r\u{1F600}"))).exit));
      assert.deepStrictEqual(seen, { requests: 1, ran: 1 });
    }),
  );
});

for (const [name, store] of Object.entries(stores)) {
  describe(`An id on record, in ${name}`, () => {
    const twice = (title: string, last: S.Step, before: string, inAnother: boolean) =>
      it.effect(title, () =>
        Effect.gen(function* () {
          const recorder = yield* store;
          const first = yield* processOver(recorder);
          const it = yield* Effect.forkChild(first.watched(first.stream(last, "r")));
          yield* until(Effect.map(recorder.run("r"), (run) => run?.state === before && first.seen.ran > 0));
          assert.strictEqual((yield* recorder.run("r"))?.state, before);
          assert.deepStrictEqual(first.seen, { requests: 1, ran: 1 });
          const second = inAnother ? yield* processOver(recorder) : first;
          refusedFor("r", yield* second.watched(second.stream(last, "r")));
          assert.strictEqual(first.seen.requests + (inAnother ? second.seen.requests : 0), 1);
          assert.strictEqual(first.seen.ran + (inAnother ? second.seen.ran : 0), 1);
          assert.strictEqual((yield* recorder.run("r"))?.state, before);
          yield* Fiber.interrupt(it);
        }).pipe(Effect.scoped),
      );

    for (const inAnother of [false, true]) {
      const where = inAnother ? "by another process" : "here";
      twice(`is refused ${where} while its run is live`, S.never, "live", inAnother);
      twice(`is refused ${where} while its run is parked`, S.reset, "asking", inAnother);
      twice(`is refused ${where} after its run has ended`, S.done, "ended", inAnother);
    }

    it.effect("belongs to one run if two start with it at once", () =>
      Effect.gen(function* () {
        const recorder = yield* store;
        const held = Deferred.makeUnsafe<void>();
        const slow: Recorder = {
          ...recorder,
          write: (id, entries) => Effect.andThen(Deferred.await(held), recorder.write(id, entries)),
        };
        const [one, other] = [yield* processOver(slow), yield* processOver(slow)];
        const begun = yield* Effect.forkChild(
          Effect.all(
            [
              one.watched(one.stream(S.done, "r")),
              one.watched(one.stream(S.done, "r")),
              other.watched(other.stream(S.done, "r")),
            ],
            { concurrency: "unbounded" },
          ),
        );
        yield* Effect.yieldNow;
        yield* Deferred.succeed(held, undefined);
        yield* TestClock.adjust("1 second");
        const all = yield* Fiber.join(begun);
        assert.lengthOf(
          all.filter(({ exit }) => Exit.isSuccess(exit)),
          1,
        );
        for (const it of all.filter(({ exit }) => Exit.isFailure(exit))) refusedFor("r", it);
        assert.strictEqual(one.seen.requests + other.seen.requests, 1);
        assert.strictEqual(one.seen.ran + other.seen.ran, 1);
      }).pipe(Effect.scoped),
    );

    it.effect("is drawn again if a seeded Random repeats it", () =>
      Effect.gen(function* () {
        const recorder = yield* store;
        for (let process = 0; process < 2; process += 1) {
          const it = yield* processOver(recorder, 0.25);
          const same = it.stream(S.done);
          assert.isTrue(Exit.isSuccess((yield* it.watched(same)).exit), "the first");
          assert.isTrue(Exit.isSuccess((yield* it.watched(same)).exit), "the same value again");
          assert.deepStrictEqual(it.seen, { requests: 2, ran: 2 });
        }
        assert.lengthOf(yield* recorder.runs(), 4);
      }).pipe(Effect.scoped),
    );
  });
}

describe("An id whose record is gone", () => {
  it.effect("is refused while this process knows its calls, and free if none was handed over", () =>
    Effect.gen(function* () {
      const recorder = yield* memory;
      const it = yield* processOver(recorder);
      yield* it.watched(it.stream(S.done, "r"));
      yield* recorder.prune({ keep: 0 });
      refusedFor("r", yield* it.watched(it.stream(S.done, "r")));
      assert.deepStrictEqual(it.seen, { requests: 1, ran: 1 });
      const silent = S.options(S.scripted([S.text("a"), S.done], [S.text("b"), S.done]), { runId: "silent" });
      for (const _ of [1, 2]) {
        assert.isTrue(Exit.isSuccess(yield* Effect.exit(Stream.runDrain(it.processor.run(silent)))));
        yield* recorder.prune({ keep: 0 });
      }
    }).pipe(Effect.scoped),
  );

  it.effect("is refused if its record exists and cannot be read", () =>
    Effect.gen(function* () {
      const damaged = new RecorderError({ reason: "corrupt", run_id: "r", message: "r: damaged" });
      const it = yield* processOver({ ...(yield* memory), write: () => Effect.fail(damaged) });
      refusedFor("r", yield* it.watched(it.stream(S.done, "r")));
      assert.deepStrictEqual(it.seen, { requests: 0, ran: 0 });
    }).pipe(Effect.scoped),
  );
});

describe("An id that turns out to be another run's when the store is back", () => {
  /** The store is away at the run's start, and has an earlier run with the same id. */
  const unknowing = (script: ReadonlyArray<S.Step>, awayMs: number) =>
    Effect.gen(function* () {
      const recorder = yield* memory;
      const before = yield* processOver(recorder);
      yield* before.watched(before.stream(S.done, "r"));
      const down = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "r", message: "away" }));
      const store = faulty(recorder, (_write, now) => (now < awayMs ? () => down : undefined));
      const it = yield* processOver(store.recorder);
      const provider = S.scripted(script, [S.start, S.done]);
      const bash = yield* Effect.forkChild(it.watched(it.processor.run(S.options(provider, { runId: "r" })) as never));
      yield* TestClock.adjust("1 hour");
      return { seen: yield* Fiber.join(bash), attempts: provider.attempts.length, record: yield* recorder.run("r") };
    }).pipe(Effect.scoped);

  it.effect("stops the run: shown content stays unrecorded, and nothing is reported as complete", () =>
    Effect.gen(function* () {
      const it = yield* unknowing([S.text("a"), S.wait(60_000), S.text("b"), S.done], 10_000);
      assert.deepStrictEqual(it.seen.lines, ["attempt 1 first", "a", "end refused lifecycle_closed"]);
      assert.include(S.errorOf(it.seen.exit)?.message, "runId: expected a new id");
      assert.deepInclude(it.record?.end, { state: "completed", attempts: 1 });
    }),
  );

  it.effect("causes no retry", () =>
    Effect.gen(function* () {
      const it = yield* unknowing([S.start, S.wait(5_000), S.reset], 6_000);
      assert.strictEqual(it.attempts, 1);
      assert.match(it.seen.lines.at(-1) ?? "", /^end refused/);
    }),
  );
});
