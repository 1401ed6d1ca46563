import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import { TestClock } from "effect/testing";
import * as E from "./Entries.ts";
import { type Recorder, record } from "./RecorderBench.ts";
import * as Folder from "./SqlFolder.ts";

const leaseMs = 15_000;
const begun = [E.begun("r"), E.attempt(1)];

/** Two recorders over one file, as two processes have it; the second one's clock may run ahead. */
const two = Effect.gen(function* () {
  const file = yield* Folder.emptyPath;
  let ahead = 0;
  const first = yield* Folder.open({ file, leaseMs });
  const second = yield* Folder.open({ file, leaseMs }, () => ahead);
  return {
    file,
    first,
    second,
    ahead: (ms: number) => {
      ahead = ms;
    },
  };
});

const reason = (effect: Effect.Effect<unknown, { readonly reason: string }>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason);

const ids = (recorder: Recorder) => Effect.map(recorder.orphans(), (runs) => runs.map((run) => run.run_id));

describe("the lease of a process", () => {
  it.effect("keeps its runs while its heartbeat goes on, however long", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
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

  it.effect("that is over gives its runs to who claims them, once", () =>
    Effect.gen(function* () {
      const { ahead, file, first, second } = yield* two;
      yield* first.write("r", begun);
      ahead(leaseMs);
      const third = yield* Folder.open({ file, leaseMs }, () => leaseMs);
      assert.deepStrictEqual(yield* second.claim("r"), E.folded(begun));
      assert.strictEqual(yield* reason(third.claim("r")), "owned");
    }),
  );

  it.effect("that was fenced writes nothing of its runs ever again, and new runs under a new lease", () =>
    Effect.gen(function* () {
      const { ahead, first, second } = yield* two;
      yield* first.write("r", begun);
      yield* first.write("r2", [E.begun("r2"), E.attempt(1)]);
      ahead(leaseMs);
      yield* second.claim("r");
      const taken = [...begun, { _tag: "RunResumed" } as const];
      yield* second.write("r", [{ _tag: "RunResumed" }]);
      const all = [E.raised(1, { shown: "text" }), E.noted(1), E.ended(), E.asked("r", 1), E.attempt(2)];
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      assert.strictEqual(yield* reason(first.write("r2", [E.raised(1, { shown: "text" })])), "fenced");
      assert.deepStrictEqual(yield* record(first, "r"), E.folded(taken));
      yield* first.write("new", [E.begun("new"), E.attempt(1)]);
      yield* TestClock.adjust("20 seconds");
      yield* first.write("new", [E.ended()]);
      // Also when its new driver has let go of it: the old stream knows nothing of what happened since.
      yield* second.write("r", [{ _tag: "RunParked", reason: "recovered" }]);
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      yield* second.claim("r");
      yield* second.write("r", [E.ended()]);
      for (const entry of all) assert.strictEqual(yield* reason(first.write("r", [entry])), "fenced", entry._tag);
      assert.strictEqual((yield* record(first, "r")).state, "ended");
    }),
  );

  it.effect("that has expired and that nobody has fenced is renewed: a laptop that slept loses nothing", () =>
    Effect.gen(function* () {
      const { ahead, first, second } = yield* two;
      yield* first.write("r", begun);
      ahead(leaseMs * 10);
      yield* first.write("r", [E.raised(1, { shown: "text" })]);
      ahead(0);
      yield* TestClock.adjust(leaseMs / 3);
      assert.strictEqual(yield* reason(second.claim("r")), "owned");
    }),
  );

  it.effect("is fenced by who finds its orphans, before anybody has claimed one", () =>
    Effect.gen(function* () {
      const { ahead, first, second } = yield* two;
      yield* first.write("r", begun);
      yield* first.write("asks", [E.begun("asks"), E.asked("asks", 1)]);
      yield* first.write("waits", [E.begun("waits"), E.asked("waits", 1), { _tag: "RunParked", reason: "question" }]);
      ahead(leaseMs - 1);
      assert.deepStrictEqual(yield* ids(second), []);
      ahead(leaseMs);
      assert.deepStrictEqual(yield* ids(second), ["r", "asks"]);
      assert.strictEqual(yield* reason(first.write("r", [E.noted(1)])), "fenced");
      assert.deepStrictEqual(yield* ids(second), ["r", "asks"]);
    }),
  );

  it.effect("is given up when its recorder closes: its runs are orphans at once", () =>
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

  it.effect("is not needed to read, and one without runs is forgotten after a day", () =>
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
});

describe("two processes and one run", () => {
  it.effect("an answer that another process gives is on record when the driver writes next", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
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
      const { first, second } = yield* two;
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
      const { first, second } = yield* two;
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

  it.effect("a parked run that goes on without a claim belongs to who drives it on", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      yield* first.write("r", [...begun, { _tag: "RunParked", reason: "question" }]);
      yield* first.write("r", [{ _tag: "RunResumed" }, E.attempt(2)]);
      assert.strictEqual(yield* reason(second.claim("r")), "owned");
      assert.deepStrictEqual(yield* ids(second), []);
    }),
  );
});

const leases = (file: string): number => {
  const database = new DatabaseSync(file);
  const [row] = database.prepare("SELECT count(*) AS n FROM leases").all();
  database.close();
  return Number(row?.n);
};

/** Lets other fibers run until something holds; a test that waits in vain runs into its time limit. */
const settled = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.yieldNow, settled(holds))));
