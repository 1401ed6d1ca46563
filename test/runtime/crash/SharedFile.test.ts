/**
 * Recovery over one SQLite file that several processes share, each of which is a separate layer over the same file.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Fiber, Layer, Scope } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { leaseMsDefault, SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import * as L from "./Lives.ts";

type Recorder = RunRecorder["Service"];

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "crash-recovery-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

/** Starts a process on the file. It is never closed, because a killed process closes nothing. */
const process = (path: string): Effect.Effect<Recorder, unknown> =>
  Effect.map(
    Layer.buildWithScope(
      Layer.fresh(SqlRunRecorder.layerFile({ file: join(path, "runs.db"), retention: false })),
      Scope.makeUnsafe(),
    ),
    Context.get(RunRecorder),
  );

/** A process that stops once its runs are on record: no time passes for it, so its lease is not renewed. */
const mortal = (path: string): Effect.Effect<Recorder, unknown> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const [ms, monotonic] = [clock.currentTimeMillisUnsafe(), clock.monotonicTimeNanosUnsafe()];
    const stopped: Clock.Clock = {
      ...clock,
      currentTimeMillisUnsafe: () => ms,
      currentTimeMillis: Effect.succeed(ms),
      currentTimeNanosUnsafe: () => BigInt(ms) * 1_000_000n,
      currentTimeNanos: Effect.succeed(BigInt(ms) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => monotonic,
      monotonicTimeNanos: Effect.succeed(monotonic),
      sleep: () => Effect.never,
    };
    return Effect.provideService(process(path), Clock.Clock, stopped);
  });

const within = <A, E>(recorder: Recorder, effect: Effect.Effect<A, E, RunRecorder>) =>
  Effect.provideService(effect, RunRecorder, recorder);

const lived = (recorder: Recorder, life: L.Life, runId: string) =>
  Effect.forEach(
    life,
    (entries) =>
      recorder.write(
        runId,
        entries.map((entry) => (entry._tag === "RunStarted" ? { ...entry, run_id: runId } : entry)),
      ),
    { discard: true },
  );

const leaseOver = TestClock.adjust(leaseMsDefault + 1);

/** Recovers while time advances: a dead process is watched for a lease before its runs are claimed. */
const recovered = (recorder: Recorder) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(within(recorder, CrashRecovery.recover()), { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(leaseMsDefault / 20);
    return yield* Fiber.join(fiber);
  });

describe("Processes that share one file", () => {
  it.effect("a dead one's runs are recovered by another, once its lease has expired and not before", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const [dead, living] = [yield* mortal(path), yield* process(path)];
      const names = Object.keys(L.lives);
      for (const [index, life] of Object.values(L.lives).entries()) yield* lived(dead, life, `r${index}`);
      const early = yield* within(living, CrashRecovery.recover());
      assert.deepStrictEqual(early.counts.skipped, 0);
      yield* leaseOver;
      const report = yield* recovered(living);
      assert.strictEqual(report.counts.skipped, 0);
      for (const [index, name] of names.entries()) {
        const record = yield* living.run(`r${index}`);
        const stands = record?.state === "ended" || record?.parked !== undefined;
        assert.isTrue(stands, `${name}: ${record?.state}`);
        for (const { decision, id, policy, ...input } of record?.incidents ?? []) {
          assert.deepStrictEqual(CrashRecovery.policyNamed(policy, [])?.decide(input), decision, `${name}: ${id} (L9)`);
        }
      }
      assert.deepStrictEqual((yield* within(living, CrashRecovery.recover())).runs, []);
    }).pipe(Effect.scoped),
  );

  it.effect("two recover at once, and each run is recovered once", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const dead = yield* mortal(path);
      for (let index = 0; index < 20; index += 1) {
        yield* lived(dead, [[L.begun(), L.attempt(1), L.raised(1, L.dispatched)]], `r${index}`);
      }
      yield* leaseOver;
      const others = [yield* process(path), yield* process(path)];
      const reports = yield* Effect.forEach(others, recovered, {
        concurrency: "unbounded",
      });
      assert.strictEqual(
        reports.reduce((count, { counts }) => count + counts.asked, 0),
        20,
      );
      for (let index = 0; index < 20; index += 1) {
        const record = yield* dead.run(`r${index}`);
        assert.deepStrictEqual([record?.incidents.length, record?.questions.length], [1, 1]);
      }
    }).pipe(Effect.scoped),
  );

  it.effect("a frozen one that wakes up writes nothing in a run that another has recovered", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const [frozen, living] = [yield* mortal(path), yield* process(path)];
      yield* lived(frozen, [[L.begun(), L.attempt(1)]], L.runId);
      yield* leaseOver;
      yield* recovered(living);
      const before = yield* living.run(L.runId);
      const error = yield* Effect.flip(frozen.write(L.runId, [L.raised(1, L.settled)]));
      assert.deepStrictEqual([error.reason, yield* living.run(L.runId)], ["fenced", before]);
    }).pipe(Effect.scoped),
  );

  it.effect("an answer given in one wakes the question that waits in another", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const [asks, answers] = [yield* process(path), yield* process(path)];
      const incident = L.incident(1, L.facts(L.text));
      yield* lived(asks, L.questioned(L.facts(L.text)), L.runId);
      const layer = UserDecisions.layerDurable().pipe(Layer.provide(Layer.succeed(RunRecorder, asks)));
      const decisions = Context.get(yield* Layer.build(layer), UserDecisions);
      const fiber = yield* Effect.forkChild(decisions.ask(L.textShown(incident)));
      const given = { run_id: L.runId, revision: 1, choice: "accept", by: "person" } as const;
      const record = yield* within(answers, CrashRecovery.answer(given));
      assert.deepStrictEqual([record.state, record.questions[0]?.answer], ["live", "accept"]);
      yield* Effect.forkChild(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)));
      assert.strictEqual(yield* Fiber.join(fiber), "accept");
      const second = yield* Effect.flip(within(answers, CrashRecovery.answer({ ...given, choice: "retry" })));
      assert.deepInclude(second, { _tag: "AnswerRefused", reason: "already_answered" });
    }).pipe(Effect.scoped),
  );

  it.effect("an answer given by a process that dies is carried out by the next", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const dead = yield* mortal(path);
      yield* lived(dead, [...L.questioned(L.facts(L.text)), [L.parked("question")]], L.runId);
      yield* dead.answer({ run_id: L.runId, revision: 1, choice: "accept", by: "person" });
      yield* dead.claim(L.runId);
      const next = yield* process(path);
      assert.deepStrictEqual((yield* within(next, CrashRecovery.recover())).counts.skipped, 1);
      yield* leaseOver;
      assert.deepStrictEqual((yield* recovered(next)).counts.stopped, 1);
      assert.strictEqual((yield* next.run(L.runId))?.end?.reason, "accepted_partial");
    }).pipe(Effect.scoped),
  );

  it.effect("a question that expired while no process was alive gets its default", () =>
    Effect.gen(function* () {
      const path = yield* folder;
      const dead = yield* mortal(path);
      const life = L.lives["a question had expired with the default accept"] ?? [];
      yield* lived(dead, life, L.runId);
      yield* leaseOver;
      const next = yield* process(path);
      assert.deepStrictEqual((yield* recovered(next)).counts.stopped, 1);
      assert.deepInclude((yield* next.run(L.runId))?.questions[0], { answer: "accept", answered_by: "expiry" });
    }).pipe(Effect.scoped),
  );
});
