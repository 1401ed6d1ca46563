import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Exit, Fiber, Scope } from "effect";
import { TestClock } from "effect/testing";
import type { SqlFileOptions } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const leaseMs = 15_000;
const hourMs = 3_600_000;
const begun = [E.begun("r"), E.attempt(1)];

/** A process with a clock that the test sets, over a shared file. The test can stop it. */
const processOf = (file: string, options: SqlFileOptions = {}) =>
  Effect.gen(function* () {
    const world = { ahead: 0, stopped: false };
    const recorder = yield* Folder.open(
      { file, leaseMs, ...options },
      { ahead: () => world.ahead, stopped: () => world.stopped },
    );
    return { recorder, world };
  });

const two = (options: SqlFileOptions = {}) =>
  Effect.gen(function* () {
    const file = yield* Folder.emptyPath;
    const [one, other] = [yield* processOf(file, options), yield* processOf(file, options)];
    return { file, first: one.recorder, ofFirst: one.world, second: other.recorder, ofSecond: other.world };
  });

/** Advances time until an effect is done, and returns its value and the elapsed milliseconds. */
const timed = <A, X, R>(effect: Effect.Effect<A, X, R>, stepMs = leaseMs / 60) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis;
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(stepMs);
    const value = yield* Fiber.join(fiber);
    return { value, ms: (yield* Clock.currentTimeMillis) - from };
  });

const waited = <A, X, R>(effect: Effect.Effect<A, X, R>) => Effect.map(timed(effect), ({ value }) => value);

const reason = (effect: Effect.Effect<unknown, { readonly reason: string }>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason);

const ids = (recorder: Recorder) => Effect.map(recorder.orphans(), (runs) => runs.map((run) => run.run_id));

/** The runs that seem to have no owner, as a list for people shows them. */
const seeming = (recorder: Recorder) =>
  Effect.map(recorder.orphans(100, { waits: false }), (runs) => runs.map((run) => run.run_id));

describe("the lease of a process", () => {
  it.effect("keeps its runs while its heartbeat continues, for any time", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two();
      yield* first.write("r", begun);
      for (let beat = 0; beat < 20; beat += 1) {
        yield* TestClock.adjust("5 seconds");
        assert.deepStrictEqual(yield* ids(second), []);
        assert.strictEqual(yield* reason(second.claim("r")), "owned");
      }
      assert.strictEqual(yield* reason(second.write("r", [E.raised(1, { shown: "text" })])), "fenced");
      yield* first.write("r", [E.raised(1, { shown: "reasoning" })]);
      assert.strictEqual((yield* record(first, "r")).attempts[0]?.facts.shown, "reasoning");
    }),
  );

  it.effect("ends at once if another process learns that its process has ended, and no other lease is affected", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [ended, longer, watching] = yield* Effect.all(
        [{ process: "one" }, { process: "one-and-more" }, {}].map((options) => processOf(file, options)),
      );
      if (ended === undefined || longer === undefined || watching === undefined) return assert.fail();
      const { recorder } = watching;
      yield* ended.recorder.write("r", begun);
      yield* longer.recorder.write("s", begun);
      assert.isDefined(recorder.processEnded);
      for (const name of ["on", "another", "one-and", ""]) yield* recorder.processEnded?.(name) ?? Effect.void;
      assert.strictEqual(yield* reason(recorder.claim("r")), "owned");
      yield* recorder.processEnded?.("one") ?? Effect.void;
      assert.deepStrictEqual(yield* ids(recorder), ["r"]);
      yield* recorder.claim("r");
      assert.strictEqual(yield* reason(recorder.claim("s")), "owned");
      assert.strictEqual(yield* reason(ended.recorder.write("r", [E.raised(1, { shown: "text" })])), "fenced");
      yield* longer.recorder.write("s", [E.raised(1, { shown: "text" })]);
      yield* recorder.processEnded?.("one") ?? Effect.void;
      assert.deepStrictEqual(yield* ids(recorder), [], "it is told twice");
    }),
  );

  it.effect("ends for a process that has watched it for a whole lease, not before, and its runs go to one of two", () =>
    Effect.gen(function* () {
      const { file, first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs - 1);
      assert.strictEqual(yield* reason(second.claim("r")), "owned");
      yield* TestClock.adjust(1);
      const { recorder: third } = yield* processOf(file);
      const claims = Effect.forEach([second, third], (it) => Effect.result(it.claim("r")), {
        concurrency: "unbounded",
      });
      const { ms, value } = yield* timed(claims);
      assert.isAtLeast(ms, leaseMs);
      assert.isAtMost(ms, leaseMs * 1.25);
      assert.deepStrictEqual(value.map((it) => it._tag).toSorted(), ["Failure", "Success"]);
      const [won] = value.flatMap((it) => (it._tag === "Success" ? [it.success] : []));
      assert.deepStrictEqual(won, E.folded(begun));
      assert.deepStrictEqual(
        value.flatMap((it) => (it._tag === "Failure" ? [it.failure.reason] : [])),
        ["owned"],
      );
    }),
  );

  it.effect("that was fenced never writes its runs again, and writes new runs under a new lease", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      yield* first.write("r2", [E.begun("r2"), E.attempt(1)]);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs);
      yield* waited(second.claim("r"));
      const taken = [...begun, { _tag: "RunResumed" } as const];
      yield* second.write("r", [{ _tag: "RunResumed" }]);
      const all = [E.raised(1, { shown: "text" }), E.noted(1), E.ended(), E.asked("r", 1), E.attempt(2)];
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      assert.strictEqual(yield* reason(first.write("r2", [E.raised(1, { shown: "text" })])), "fenced");
      assert.deepStrictEqual(yield* record(first, "r"), E.folded(taken));
      yield* first.write("new", [E.begun("new"), E.attempt(1)]);
      yield* TestClock.adjust("20 seconds");
      yield* first.write("new", [E.ended()]);
      // Even if the new owner has released it: the old stream does not know what has happened since.
      yield* second.write("r", [{ _tag: "RunParked", reason: "recovered" }]);
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      yield* second.claim("r");
      yield* second.write("r", [E.ended()]);
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      assert.strictEqual((yield* record(first, "r")).state, "ended");
    }),
  );

  it.effect("a run that a process has lost is not its again before its old driver knows", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs);
      yield* waited(second.claim("r"));
      yield* second.write("r", [{ _tag: "RunParked", reason: "recovered" }]);
      yield* first.write("other", [E.begun("other"), E.ended()]);
      // Its sweeper and its old stream are one process: if both wrote, the run would have two drivers.
      assert.strictEqual(yield* reason(first.claim("r")), "owned");
      yield* first.release("nobody");
      assert.strictEqual(yield* reason(first.write("r", [E.noted(1)])), "fenced");
      yield* first.claim("r");
      yield* first.write("r", [{ _tag: "RunResumed" }]);
    }),
  );

  it.effect("that has expired and was not fenced is renewed, so a laptop that slept loses nothing", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs * 10);
      yield* first.write("r", [E.raised(1, { shown: "text" })]);
      assert.strictEqual(yield* reason(second.claim("r")), "owned");
    }),
  );

  it.effect("is renewed by a write of a process that wakes while another one watches it", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs * 2);
      const claim = yield* Effect.forkChild(Effect.flip(second.claim("r")), { startImmediately: true });
      yield* TestClock.adjust(leaseMs * 0.8);
      assert.isUndefined(claim.pollUnsafe());
      yield* first.write("r", [E.noted(1)]);
      assert.strictEqual((yield* waited(Fiber.join(claim))).reason, "owned");
    }),
  );

  it.effect("a caller that leaves while it waits has claimed nothing", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs);
      for (const effect of [Effect.asVoid(second.claim("r")), Effect.asVoid(second.orphans())]) {
        // Uninterruptible, as the recovery loop and `takeUp` call it: they must not lose a run that they have claimed.
        const fiber = yield* Effect.forkChild(Effect.uninterruptible(effect), { startImmediately: true });
        yield* TestClock.adjust(leaseMs * 0.4);
        yield* Fiber.interrupt(fiber);
      }
      yield* first.write("r", [E.noted(1)]);
    }),
  );

  it.effect("is fenced by the process that finds its orphans, before one is claimed", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      yield* first.write("asks", [E.begun("asks"), E.asked("asks", 1)]);
      yield* first.write("waits", [E.begun("waits"), E.asked("waits", 1), { _tag: "RunParked", reason: "question" }]);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs - 1);
      assert.deepStrictEqual(yield* ids(second), []);
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(yield* waited(ids(second)), ["r", "asks"]);
      assert.strictEqual(yield* reason(first.write("r", [E.noted(1)])), "fenced");
      assert.deepStrictEqual(yield* ids(second), ["r", "asks"]);
    }),
  );

  it.effect("a process that asks repeatedly knows of a dead one as soon as its lease is over", () =>
    Effect.gen(function* () {
      const { first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      let found: ReadonlyArray<string> = [];
      let ms = 0;
      while (found.length === 0 && ms < leaseMs * 3) {
        const look = yield* timed(ids(second));
        found = look.value;
        yield* TestClock.adjust(100);
        ms += look.ms + 100;
      }
      assert.deepStrictEqual(found, ["r"]);
      assert.isAtMost(ms, leaseMs * 1.25);
    }),
  );

  it.effect("a look for people claims nothing from a silent process, waits for nothing and writes nothing", () =>
    Effect.gen(function* () {
      const { file, first, ofFirst, second } = yield* two();
      yield* first.write("r", begun);
      assert.deepStrictEqual(yield* seeming(second), []);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      assert.deepStrictEqual(yield* seeming(second), ["r"]);
      other.exec("COMMIT");
      other.close();
      yield* first.write("r", [E.noted(1)]);
      assert.deepStrictEqual(yield* seeming(second), []);
      assert.strictEqual(leases(file), 1);
    }),
  );

  it.effect("is released when its recorder closes, and its runs are orphans at once", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const first = yield* Scope.provide(Folder.open({ file, leaseMs }), scope);
      const second = yield* Folder.open({ file, leaseMs });
      yield* first.write("r", begun);
      assert.deepStrictEqual(yield* ids(second), []);
      yield* Scope.close(scope, Exit.void);
      assert.deepStrictEqual(yield* ids(second), ["r"]);
      assert.strictEqual(yield* reason(first.write("r", [E.noted(1)])), "unavailable");
    }),
  );

  it.effect("is not needed to read, and one without runs is deleted after a day", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const reader = yield* Folder.open({ file });
      yield* reader.runs();
      yield* reader.run("r");
      assert.strictEqual(leases(file), 0);
      const scope = yield* Scope.make();
      const writer = yield* Scope.provide(Folder.open({ file, leaseMs }), scope);
      yield* writer.write("r", [...begun, E.ended({ at: 3_000 })]);
      yield* Scope.close(scope, Exit.void);
      assert.strictEqual(leases(file), 1);
      yield* TestClock.adjust("25 hours");
      yield* Folder.open({ file, retention: {} });
      yield* settled(() => leases(file) === 0);
    }),
  );

  it.effect("accepts valid options, and names invalid ones", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      for (const option of [{ leaseMs: 0 }, { leaseMs: Number.NaN }, { leaseMs: 1e9 }, { lockWaitMs: -1 }]) {
        const error = yield* Effect.flip(Effect.scoped(Folder.open({ file, ...option })));
        assert.strictEqual(error.reason, "bad_option");
        assert.match(error.message, new RegExp(`^${Object.keys(option)[0]}: expected`));
      }
    }),
  );
});

describe("wrong clocks take no run from a process with a heartbeat, and release none late", () => {
  for (const aheadMs of [60_000, -60_000, hourMs, -hourMs]) {
    it.effect(`the other one's is ${aheadMs / 1_000} s off`, () =>
      Effect.gen(function* () {
        const { first, ofFirst, ofSecond, second } = yield* two();
        ofSecond.ahead = aheadMs;
        yield* first.write("r", begun);
        for (let look = 0; look < 5; look += 1) {
          const { ms, value } = yield* timed(ids(second));
          assert.deepStrictEqual(value, []);
          assert.isAtMost(ms, leaseMs / 2, "one new beat is proof enough");
          assert.strictEqual(yield* waited(reason(second.claim("r"))), "owned");
          yield* TestClock.adjust(leaseMs / 2);
        }
        yield* first.write("r", [E.noted(1)]);
        ofFirst.stopped = true;
        yield* TestClock.adjust(leaseMs);
        const found = yield* timed(ids(second));
        assert.deepStrictEqual(found.value, ["r"]);
        assert.isAtMost(found.ms, leaseMs * 1.25);
      }),
    );
  }

  it.effect("they jump back and forth", () =>
    Effect.gen(function* () {
      const { first, ofFirst, ofSecond, second } = yield* two();
      yield* first.write("r", begun);
      for (let jump = 0; jump < 40; jump += 1) {
        ofFirst.ahead = [0, hourMs, -hourMs, 20_000][jump % 4] ?? 0;
        ofSecond.ahead = [-20_000, 0, hourMs, hourMs, -hourMs][jump % 5] ?? 0;
        assert.deepStrictEqual(yield* waited(ids(second)), []);
        assert.strictEqual(yield* waited(reason(second.claim("r"))), "owned");
        yield* TestClock.adjust(leaseMs / 4);
      }
      yield* first.write("r", [E.noted(1)]);
    }),
  );

  it.effect("a process of a longer lease is watched for that time", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [long, short] = [yield* processOf(file), yield* processOf(file, { leaseMs: 1_000 })];
      short.world.ahead = hourMs;
      yield* long.recorder.write("r", begun);
      const early = yield* timed(Effect.flip(short.recorder.claim("r")));
      assert.strictEqual(early.value.reason, "owned");
      long.world.stopped = true;
      yield* TestClock.adjust(leaseMs * 2);
      const late = yield* timed(short.recorder.claim("r"));
      assert.isAtLeast(late.ms, leaseMs);
    }),
  );
});

describe("an outage of the store ends no lease", () => {
  it.effect("the first process to return waits until the live ones have sent a heartbeat", () =>
    Effect.gen(function* () {
      const { file, first, second } = yield* two({ lockWaitMs: 0 });
      yield* first.write("r", begun);
      yield* second.write("s", [E.begun("s"), E.attempt(1)]);
      // It has already watched when the store goes away.
      assert.deepStrictEqual(yield* ids(second), []);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      yield* TestClock.adjust(leaseMs * 3);
      assert.strictEqual(yield* reason(second.claim("r")), "locked");
      assert.strictEqual(yield* reason(second.orphans()), "locked");
      other.exec("COMMIT");
      other.close();
      const { ms, value } = yield* timed(ids(second));
      assert.deepStrictEqual(value, []);
      assert.isAtMost(ms, leaseMs / 2);
      yield* first.write("r", [E.noted(1)]);
      yield* second.write("s", [E.noted(1)]);
    }),
  );

  it.effect("one that begins while a process waits restarts its watch", () =>
    Effect.gen(function* () {
      const { file, first, ofFirst, second } = yield* two({ lockWaitMs: 60_000 });
      yield* first.write("r", begun);
      ofFirst.stopped = true;
      yield* TestClock.adjust(leaseMs);
      const claim = yield* Effect.forkChild(Effect.result(second.claim("r")), { startImmediately: true });
      yield* TestClock.adjust(leaseMs * 0.7);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      yield* TestClock.adjust(leaseMs * 0.6);
      other.exec("COMMIT");
      other.close();
      // By its own count the watcher has waited for more than a lease, and the owner returns a little later. The heartbeat and the
      // claim both wait for the lock in real time, so only a claim that has looked again can wrongly take the run.
      const before = beats(file);
      yield* settled(() => claim.pollUnsafe() !== undefined || beats(file) >= before + 2);
      yield* TestClock.adjust(leaseMs * 0.4);
      assert.isUndefined(claim.pollUnsafe());
      yield* first.write("r", [E.noted(1)]);
      const outcome = yield* waited(Fiber.join(claim));
      assert.strictEqual(outcome._tag === "Failure" ? outcome.failure.reason : "taken", "owned");
      yield* first.write("r", [E.noted(2)]);
    }),
  );
});

describe("two processes and one run", () => {
  it.effect("an answer that another process gives is on record when the owner writes next", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two();
      const asked = [...begun, E.opened("r", 1), E.asked("r", 1)];
      yield* first.write("r", asked);
      yield* second.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      yield* first.write("r", [E.noted(1)]);
      assert.strictEqual((yield* record(second, "r")).state, "live");
      yield* first.write("r", [E.attempt(2, "replay")]);
      const answered = { _tag: "QuestionAnswered", revision: 1, answer: "retry", by: "person" } as const;
      assert.deepStrictEqual(
        yield* record(second, "r"),
        E.folded([...asked, answered, E.noted(1), E.attempt(2, "replay")]),
      );
    }),
  );

  it.effect("of two answers from two processes one counts", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two();
      yield* first.write("r", [...begun, E.opened("r", 1), E.asked("r", 1)]);
      const results = yield* Effect.all(
        [
          Effect.result(first.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" })),
          Effect.result(second.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" })),
        ],
        { concurrency: "unbounded" },
      );
      assert.deepStrictEqual(results.map((it) => it._tag).toSorted(), ["Failure", "Success"]);
    }),
  );

  it.effect("a run parked by one is taken over by the other, and the first one's entries are refused", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two();
      const left = { _tag: "RunParked", reason: "interrupted" } as const;
      yield* first.write("r", [...begun, left]);
      assert.deepStrictEqual(yield* ids(second), ["r"]);
      assert.deepStrictEqual(yield* second.claim("r"), E.folded([...begun, left]));
      assert.deepStrictEqual(yield* ids(second), []);
      assert.deepStrictEqual(yield* ids(first), []);
      assert.strictEqual(yield* reason(first.write("r", [E.noted(1)])), "fenced");
      yield* second.release("r");
      yield* first.claim("r");
    }),
  );

  it.effect("a run that is given back while the store is away can be taken over as soon as it returns", () =>
    Effect.gen(function* () {
      const { file, first, second } = yield* two({ lockWaitMs: 0 });
      const left = [...begun, { _tag: "RunParked", reason: "question" } as const];
      yield* first.write("r", left);
      yield* first.claim("r");
      const other = new DatabaseSync(file);
      other.exec("BEGIN IMMEDIATE");
      yield* first.release("r");
      other.exec("ROLLBACK");
      other.close();
      assert.strictEqual(yield* reason(second.claim("r")), "owned");
      yield* TestClock.adjust(leaseMs / 3);
      assert.strictEqual((yield* second.claim("r")).parked, "answered");
    }),
  );

  it.effect("a write that comes after its run was given back changes nothing: another process takes the run over", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two();
      const left = [...begun, { _tag: "RunParked", reason: "question" } as const];
      yield* first.write("r", left);
      yield* first.claim("r");
      // Both are queued in one turn: the release is committed before the writer has gathered its group.
      const late = yield* Effect.forkChild(Effect.result(first.write("r", [{ _tag: "RunResumed" }])), {
        startImmediately: true,
      });
      yield* first.release("r");
      assert.deepInclude(yield* Fiber.join(late), { _tag: "Failure" });
      assert.deepStrictEqual(yield* second.claim("r"), E.folded(left));
      yield* second.write("r", [{ _tag: "RunResumed" }, E.attempt(2)]);
    }),
  );
});

const ofLeases = (file: string, what: string): number => {
  const database = new DatabaseSync(file);
  const [row] = database.prepare(`SELECT ${what} AS n FROM stream_recovery_leases`).all();
  database.close();
  return Number(row?.n);
};

const leases = (file: string): number => ofLeases(file, "count(*)");

const beats = (file: string): number => ofLeases(file, "sum(beats)");

/** Lets other fibers run until a condition holds, or the test's time limit ends. */
const settled = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.yieldNow, settled(holds))));
