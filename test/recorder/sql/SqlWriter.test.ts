import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber, Metric, Scope } from "effect";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const commits = Effect.map(Metric.value(SqlFailure.commits), ({ count }) => Number(count));

const names = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);

describe("writes of one process are committed in groups", () => {
  it.effect("many at once need few commits, and consecutive ones need one each", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      const before = yield* commits;
      yield* Effect.forEach(names(200), (id) => recorder.write(id, [E.begun(id)]), { concurrency: "unbounded" });
      const together = (yield* commits) - before;
      assert.isAtMost(together, 2);
      for (const id of names(5)) yield* recorder.write(id, [E.attempt(1)]);
      assert.strictEqual((yield* commits) - before - together, 5);
      assert.strictEqual((yield* recorder.runs({ limit: 1_000 })).length, 200);
    }),
  );

  it.effect("more than the queue holds are all committed", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      yield* Effect.forEach(names(3_000), (id) => recorder.write(id, [E.begun(id)]), { concurrency: "unbounded" });
      assert.strictEqual((yield* recorder.runs({ limit: 5_000 })).length, 3_000);
    }),
  );

  it.effect("a write that does not fit fails alone, with any others in its commit", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      yield* recorder.write("ended", [E.begun("ended"), E.ended()]);
      const results = yield* Effect.forEach(
        [
          recorder.write("a", [E.begun("a")]),
          recorder.write("nobody", [E.attempt(1)]),
          recorder.write("a", [E.begun("a")]),
          recorder.write("a", [E.attempt(1)]),
          recorder.write("ended", [E.attempt(1)]),
          recorder.write("b", [E.begun("b")]),
        ],
        Effect.result,
        { concurrency: "unbounded" },
      );
      assert.deepStrictEqual(
        results.map((it) => (it._tag === "Success" ? "committed" : it.failure.reason)),
        ["committed", "unknown_run", "run_exists", "committed", "run_ended", "committed"],
      );
      assert.deepStrictEqual(yield* record(recorder, "a"), E.folded([E.begun("a"), E.attempt(1)]));
    }),
  );

  it.effect("a writer that is interrupted while it waits affects no other, and its run is whole", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const fibers = yield* Effect.forEach(names(20), (_, n) =>
        Effect.forkChild(recorder.write("r", [E.noted(n), E.raised(1, { text_through: n })])),
      );
      yield* Effect.yieldNow;
      yield* Effect.forEach(fibers.slice(0, 10), Fiber.interrupt, { concurrency: "unbounded" });
      yield* Effect.forEach(fibers.slice(10), Fiber.join);
      const { attempts, evidence } = yield* record(recorder, "r");
      assert.strictEqual(attempts[0]?.facts.text_through, 19);
      assert.includeMembers(
        evidence.first.concat(evidence.last).map(({ at_ms }) => at_ms),
        Array.from({ length: 10 }, (_, n) => n + 10),
      );
      yield* recorder.write("r", [E.ended()]);
    }),
  );

  it.effect("a completed write is on disk: another connection reads it at once", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file });
      const other = new DatabaseSync(file, { readOnly: true });
      for (const id of names(10)) {
        yield* recorder.write(id, [E.begun(id)]);
        assert.strictEqual(
          other.prepare("SELECT count(*) AS n FROM stream_recovery_runs WHERE run_id = ?").get(id)?.n,
          1,
        );
      }
      other.close();
    }),
  );

  it.effect("queued writes are still committed when the recorder closes", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const recorder = yield* Scope.provide(Folder.open({ file }), scope);
      const fibers = yield* Effect.forEach(names(200), (id) => Effect.forkChild(recorder.write(id, [E.begun(id)])));
      yield* Effect.yieldNow;
      yield* Scope.close(scope, Exit.void);
      for (const fiber of fibers) yield* Fiber.join(fiber);
      const again = yield* Folder.open({ file });
      assert.strictEqual((yield* again.runs({ limit: 1_000 })).length, 200);
    }),
  );

  it.effect("an abandoned write makes no process the owner of a run that was released meanwhile", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), { _tag: "RunParked", reason: "recovered" }]);
      yield* recorder.claim("r");
      const lock = new DatabaseSync(file);
      lock.exec("BEGIN IMMEDIATE");
      const resumed = yield* Effect.forkChild(recorder.write("r", [{ _tag: "RunResumed" }]), {
        startImmediately: true,
      });
      for (let turn = 0; turn < 10; turn += 1) yield* Effect.yieldNow;
      assert.isUndefined(resumed.pollUnsafe());
      yield* Fiber.interrupt(resumed);
      lock.exec("ROLLBACK");
      lock.close();
      yield* recorder.release("r");
      // Commits after everything that was queued before it.
      yield* recorder.write("s", [E.begun("s")]);
      const other = yield* Folder.open({ file });
      assert.strictEqual((yield* other.claim("r")).resumes, 0);
    }),
  );
});
