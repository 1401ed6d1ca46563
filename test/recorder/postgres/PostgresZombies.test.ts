import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, type Scope } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RowChanged } from "../../../src/recorder/sql/SqlFailure.ts";
import * as SqlStore from "../../../src/recorder/sql/SqlStore.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** Two processes: what one of them is about to do can be held up in the middle of its transaction. */
interface Two {
  readonly slow: Recorder;
  readonly proxy: StatementProxy.StatementProxy;
  readonly quick: Recorder;
}

const two: Effect.Effect<Two, RecorderError, Scope.Scope> = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const proxy = yield* StatementProxy.make(address);
  const slow = yield* Databases.open({ address: proxy.address, process: "slow" });
  return { slow, proxy, quick: yield* Databases.open({ address, process: "quick" }) };
});

/** Runs `held` up to the statement that it is held at, then `meanwhile` to its end, and lets `held` go on. */
const interleaved = <A, E, B, F>(
  { proxy }: Two,
  at: RegExp,
  held: Effect.Effect<A, E>,
  meanwhile: Effect.Effect<B, F>,
) =>
  Effect.gen(function* () {
    const gate = proxy.hold(at);
    const fiber = yield* Effect.forkChild(Effect.result(held));
    yield* gate.reached;
    const other = yield* meanwhile;
    yield* gate.release;
    return [yield* Fiber.join(fiber), other] as const;
  });

const update = /^UPDATE \S*runs\b/;
const parked = (reason: "interrupted" | "question") => ({ _tag: "RunParked", reason }) as const;
const asking = [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1)];

describe("PostgresRunRecorder, where two processes meet in the middle of a transaction", () => {
  it.live("claim against claim: one gets the run, and the other is told that it is owned", () =>
    Effect.gen(function* () {
      const both = yield* two;
      yield* both.slow.write("r", [E.begun("r"), parked("interrupted")]);
      const [late] = yield* interleaved(both, update, both.slow.claim("r"), both.quick.claim("r"));
      assert.strictEqual(late._tag === "Failure" ? late.failure.reason : "claimed", "owned");
      yield* both.quick.write("r", [{ _tag: "RunResumed" }, E.attempt(1)]);
      assert.strictEqual((yield* Effect.flip(both.slow.write("r", [E.attempt(2)]))).reason, "fenced");
    }).pipe(Effect.scoped),
  );

  it.live("start against start: one begins the run, and the other is told that there is one", () =>
    Effect.gen(function* () {
      const both = yield* two;
      const start = (it: Recorder) => it.write("r", [E.begun("r")]);
      const [late] = yield* interleaved(both, /^INSERT INTO \S*runs\b/, start(both.slow), start(both.quick));
      assert.strictEqual(late._tag === "Failure" ? late.failure.reason : "started", "fenced");
      yield* both.quick.write("r", [E.attempt(1)]);
    }).pipe(Effect.scoped),
  );

  it.live("answer against write: an answer to what has grown meanwhile is refused", () =>
    Effect.gen(function* () {
      const both = yield* two;
      yield* both.quick.write("r", asking);
      const grown = both.quick.write("r", [E.raised(1, { progress: "output", shown: "text", text_through: 9 })]);
      const answer = both.slow.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const [late] = yield* interleaved(both, update, answer, grown);
      assert.deepInclude(late._tag === "Failure" ? late.failure : {}, { reason: "facts_grown" });
      assert.isUndefined((yield* record(both.quick, "r")).questions[0]?.answer);
    }).pipe(Effect.scoped),
  );

  it.live("write against answer: the write is taken, and the answer stays", () =>
    Effect.gen(function* () {
      const both = yield* two;
      yield* both.slow.write("r", asking);
      const answer = both.quick.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const [late] = yield* interleaved(both, update, both.slow.write("r", [E.noted(1)]), answer);
      assert.strictEqual(late._tag, "Success");
      const { evidence, questions } = yield* record(both.quick, "r");
      assert.deepStrictEqual([evidence.first.length, questions[0]?.answer], [1, "retry"]);
    }).pipe(Effect.scoped),
  );

  it.live("answer against answer: the first that is committed counts", () =>
    Effect.gen(function* () {
      const both = yield* two;
      yield* both.quick.write("r", asking);
      const answer = (it: Recorder, choice: "retry" | "stop") =>
        it.answer({ run_id: "r", revision: 1, choice, by: "person" });
      const [late] = yield* interleaved(both, update, answer(both.slow, "retry"), answer(both.quick, "stop"));
      assert.deepInclude(late._tag === "Failure" ? late.failure : {}, { reason: "already_answered" });
      assert.strictEqual((yield* record(both.quick, "r")).questions[0]?.answer, "stop");
    }).pipe(Effect.scoped),
  );

  it.live("a write that is fenced in its middle is refused, and its process writes nothing more of the run", () =>
    Effect.gen(function* () {
      const both = yield* two;
      const { quick, slow } = both;
      yield* slow.write("r", [E.begun("r"), E.attempt(1)]);
      const taken = Effect.andThen(quick.processEnded?.("slow") ?? Effect.void, quick.claim("r"));
      const [late] = yield* interleaved(both, update, slow.write("r", [E.noted(1)]), taken);
      assert.strictEqual(late._tag === "Failure" ? late.failure.reason : "written", "fenced");
      assert.strictEqual((yield* Effect.flip(slow.write("r", [E.noted(2)]))).reason, "fenced");
      assert.strictEqual((yield* record(quick, "r")).evidence.first.length, 0);
      yield* quick.write("r", [E.attempt(2, "replay")]);
    }).pipe(Effect.scoped),
  );

  it.live("a run that is started in the middle of a fence belongs to a new lease, and is not lost", () =>
    Effect.gen(function* () {
      const both = yield* two;
      const { quick, slow } = both;
      yield* slow.write("old", [E.begun("old")]);
      const ended = quick.processEnded?.("slow") ?? Effect.void;
      const [late] = yield* interleaved(both, /^INSERT INTO \S*runs\b/, slow.write("r", [E.begun("r")]), ended);
      const orphans = (yield* quick.orphans(10, { waits: false })).map(({ run_id }) => run_id);
      const written = yield* Effect.result(slow.write("r", [E.attempt(1)]));
      // Either order counts: the run was started before the fence and is lost with the others, or after it and is not.
      assert.strictEqual(late._tag, "Success");
      assert.deepStrictEqual(orphans.includes("r"), written._tag === "Failure");
      assert.include(orphans, "old");
    }).pipe(Effect.scoped),
  );

  it.live("what is acknowledged before a claim is in what the claim gives", () =>
    Effect.gen(function* () {
      const both = yield* two;
      const { proxy, quick, slow } = both;
      yield* slow.write("r", [E.begun("r"), E.attempt(1)]);
      const gate = proxy.hold(/^COMMIT/);
      const writing = yield* Effect.forkChild(slow.write("r", [E.noted(1)]));
      yield* gate.reached;
      // The row is the writer's until its commit: the claim waits for it, and is undone for it.
      const claiming = yield* Effect.forkChild(
        Effect.andThen(quick.processEnded?.("slow") ?? Effect.void, quick.claim("r")),
        { startImmediately: true },
      );
      yield* gate.release;
      yield* Fiber.join(writing);
      const { evidence } = yield* Fiber.join(claiming);
      assert.strictEqual(evidence.first.length, 1);
    }).pipe(Effect.scoped),
  );
});

describe("PostgresRunRecorder writes in groups", () => {
  it.live("of one statement a kind, however many runs are in it", () =>
    Effect.gen(function* () {
      const { proxy, slow } = yield* two;
      const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
      const all = (entries: (id: string) => Parameters<Recorder["write"]>[1]) =>
        Effect.forEach(ids, (id) => slow.write(id, entries(id)), { concurrency: "unbounded", discard: true });
      yield* slow.write("first", [E.begun("first")]);
      const from = proxy.statements.length;
      yield* all((id) => [E.begun(id), E.attempt(1)]);
      yield* all(() => [E.raised(1, { shown: "text" })]);
      yield* all(() => [E.ended()]);
      const kinds = proxy.statements.slice(from).map((sql) =>
        sql
          .split(/\s+/, 2)
          .join(" ")
          .replace(/\S*runs$/, "runs"),
      );
      const group = ["BEGIN ISOLATION", "SELECT id,", "SELECT run_id,"];
      assert.deepStrictEqual(kinds, [
        ...[...group, "INSERT INTO", "COMMIT"],
        ...[...group, "UPDATE runs", "COMMIT"],
        ...[...group, "UPDATE runs", "COMMIT"],
      ]);
      assert.strictEqual((yield* slow.runs({ state: "ended", limit: 100 })).length, 60);
    }).pipe(Effect.scoped),
  );

  it.live("a group that rests on another version of one of its runs changes none of them", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const recorder = yield* Databases.open({ address });
      const tables = SqlTables.make(yield* Databases.client(address, "test"), SqlTables.prefixDefault);
      for (const id of ["a", "b"]) yield* recorder.write(id, [E.begun(id)]);
      const changed = (runId: string) =>
        Effect.map(SqlStore.load(tables, runId), (before): SqlStore.Changed => {
          if (before === undefined) throw new Error("it is there");
          return { runId, before, record: E.folded([E.begun(runId), E.attempt(1)]), owner: before.owner };
        });
      const group = [yield* changed("a"), yield* changed("b")];
      yield* recorder.write("b", [E.noted(1)]);
      assert.instanceOf(yield* Effect.flip(tables.dialect.write(SqlStore.save(tables, group))), RowChanged);
      assert.strictEqual((yield* record(recorder, "a")).attempts.length, 0);
      const again = [yield* changed("a"), yield* changed("b")];
      yield* tables.dialect.write(SqlStore.save(tables, again));
      assert.strictEqual((yield* record(recorder, "a")).attempts.length, 1);
    }).pipe(Effect.scoped),
  );
});
