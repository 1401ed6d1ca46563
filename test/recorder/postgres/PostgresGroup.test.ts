/**
 * Writes of several runs that PostgreSQL commits together. A process uses its own knowledge of its runs instead of reading their rows,
 * and discards it if the rows differ.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { take } from "../Committing.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const began = (id: string): ReadonlyArray<Entry> => [E.begun(id), E.attempt(1)];

/** Writes entries in a group: `true`, the reason why they are not on record, or `undefined` if the recorder does not take them. */
const together = (recorder: Recorder, runId: string, entries: ReadonlyArray<Entry>) =>
  Effect.callback<true | string | undefined>((resume) => {
    const taken = take(recorder, runId, entries, (isOnRecord, why) =>
      resume(Effect.succeed(isOnRecord || (why?.reason ?? "not told"))),
    );
    if (!taken) resume(Effect.undefined);
  });

const all = (recorder: Recorder, writes: ReadonlyArray<readonly [runId: string, entries: ReadonlyArray<Entry>]>) =>
  Effect.forEach(writes, ([runId, entries]) => together(recorder, runId, entries), { concurrency: "unbounded" });

/** Two processes; a proxy sees the statements of the first and may hold them. */
const two = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const proxy = yield* StatementProxy.make(address);
  const recorder = yield* Databases.open({ address: proxy.address, process: "first" });
  const other = yield* Databases.open({ address, process: "second" });
  return { address, other, proxy, recorder };
});

/** Counts how often the rows of runs are read from now on. */
const reads = ({ statements }: StatementProxy.StatementProxy) => {
  const from = statements.length;
  return () => statements.slice(from).filter((sql) => /^SELECT run_id, seq, shelf, version, owner\b/.test(sql)).length;
};

describe("writes of several runs to PostgreSQL", () => {
  it.live("are on record for every process when they are reported, and no row is read for them", () =>
    Effect.gen(function* () {
      const { other, proxy, recorder } = yield* two;
      assert.strictEqual(recorder.write.commit?.answers, "late");
      const read = reads(proxy);
      assert.deepStrictEqual(
        yield* all(recorder, [
          ["a", began("a")],
          ["b", began("b")],
          ["a", [E.raised(1, { shown: "text" })]],
        ]),
        [true, true, true],
      );
      assert.deepStrictEqual(yield* record(other, "a"), E.folded([...began("a"), E.raised(1, { shown: "text" })]));
      assert.isTrue(yield* together(recorder, "a", [E.opened("a", 1)]));
      assert.isTrue(yield* together(recorder, "a", [E.asked("a", 1), E.noted(5)]));
      assert.isTrue(yield* together(recorder, "b", [E.ended()]));
      assert.strictEqual(read(), 0);
      assert.deepStrictEqual(
        yield* record(other, "a"),
        E.folded([...began("a"), E.raised(1, { shown: "text" }), E.opened("a", 1), E.asked("a", 1), E.noted(5)]),
      );
      assert.strictEqual((yield* record(other, "b")).state, "ended");
    }).pipe(Effect.scoped),
  );

  it.live("are each refused for their own reason, without affecting the others", () =>
    Effect.gen(function* () {
      const { recorder } = yield* two;
      yield* recorder.write("ended", [...began("ended"), E.ended()]);
      assert.deepStrictEqual(
        yield* all(recorder, [
          ["ended", [E.attempt(2)]],
          ["a", began("a")],
          ["nobody", [E.attempt(1)]],
          ["a", [E.begun("a")]],
        ]),
        ["run_ended", true, "unknown_run", "run_exists"],
      );
      assert.deepStrictEqual(yield* record(recorder, "a"), E.folded(began("a")));
    }).pipe(Effect.scoped),
  );

  it.live("are not accepted if they could not be read back or kept", () =>
    Effect.gen(function* () {
      const { recorder } = yield* two;
      assert.isUndefined(yield* together(recorder, "a", [E.noted(Number.NaN)]));
      assert.isUndefined(yield* together(recorder, "a\0", began("a")));
    }).pipe(Effect.scoped),
  );

  it.live("read the rows if another process has written one of them, and its entry is kept", () =>
    Effect.gen(function* () {
      const { other, proxy, recorder } = yield* two;
      const asking = [...began("r"), E.opened("r", 1), E.asked("r", 1)];
      yield* all(recorder, [
        ["r", asking],
        ["s", began("s")],
      ]);
      yield* other.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      const read = reads(proxy);
      assert.deepStrictEqual(
        yield* all(recorder, [
          ["s", [E.noted(1)]],
          ["r", [E.noted(2)]],
        ]),
        [true, true],
      );
      assert.strictEqual(read(), 1);
      const { evidence, questions } = yield* record(other, "r");
      assert.deepStrictEqual([questions[0]?.answer, evidence.first.length], ["retry", 1]);
      assert.strictEqual((yield* record(other, "s")).evidence.first.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("read the rows if one of them begins a run that is on record, whoever wrote it", () =>
    Effect.gen(function* () {
      const { other, proxy, recorder } = yield* two;
      const begun = E.begun("mine");
      if (begun._tag !== "RunStarted") throw new Error("a run begins with another entry");
      const mine: Entry = { ...begun, started_by: "first" };
      yield* recorder.write("mine", [mine, E.ended()]);
      yield* other.write("theirs", began("theirs"));
      const read = reads(proxy);
      assert.deepStrictEqual(
        yield* all(recorder, [
          ["mine", [mine, E.ended()]],
          ["theirs", began("theirs")],
          ["new", began("new")],
        ]),
        [true, "fenced", true],
      );
      assert.strictEqual(read(), 1);
      assert.strictEqual(yield* together(recorder, "theirs", [E.noted(1)]), "fenced");
    }).pipe(Effect.scoped),
  );

  it.live("of a run that was driven under a lease which is lost are refused", () =>
    Effect.gen(function* () {
      const { other, recorder } = yield* two;
      yield* recorder.write("old", began("old"));
      yield* other.processEnded?.("first") ?? Effect.void;
      assert.deepStrictEqual(
        yield* all(recorder, [
          ["new", began("new")],
          ["old", [E.noted(1)]],
        ]),
        [true, "fenced"],
      );
      assert.strictEqual((yield* record(other, "old")).evidence.first.length, 0);
    }).pipe(Effect.scoped),
  );

  it.live("are reported in time by a silent server, and are on record once if it has accepted them", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const recorder = yield* Databases.open({ address: proxy.address, lockWaitMs: 0 });
      yield* recorder.write("r", began("r"));
      const its = toBounded(recorder);
      const held = proxy.hold(/^COMMIT/, "reply");
      const services = yield* Effect.context<never>();
      const write = Effect.callback<string>((resume) => {
        its.commit("r", [E.attempt(2)], { services }, (why) => resume(Effect.succeed(why?.message ?? "taken")));
      });
      assert.match(yield* write, /the recorder's write did not return within/);
      yield* held.release;
      yield* recorder.write("r", [E.attempt(2)]);
      assert.strictEqual((yield* record(recorder, "r")).attempts.length, 2);
    }).pipe(Effect.scoped),
  );

  it.live("that were accepted are committed when the recorder closes, and later ones are not accepted", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const scope = yield* Scope.make();
      const recorder = yield* Scope.provide(Databases.open({ address }), scope);
      const told: Array<boolean> = [];
      const takes = (id: string) => take(recorder, id, began(id), (it) => told.push(it));
      assert.isTrue(takes("r"));
      assert.deepStrictEqual(told, []);
      yield* Scope.close(scope, Exit.void);
      assert.deepStrictEqual(told, [true]);
      assert.isFalse(takes("s"));
      assert.deepStrictEqual(
        (yield* (yield* Databases.open({ address })).runs()).map(({ run_id }) => run_id),
        ["r"],
      );
    }).pipe(Effect.scoped),
  );
});
