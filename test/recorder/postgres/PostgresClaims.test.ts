/** Many runs of a dead process, and several processes that take them over at once: each run gets one owner. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Result, type Scope } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** Runs that a process has left, more than one transaction claims. */
const many = 250;

const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);

/** Entries of a run when its process dies: some runs have shown text, some have broken before, some wait. */
const lived = (id: string, n: number): ReadonlyArray<Entry> => [
  E.begun(id),
  E.attempt(1),
  ...(n % 2 === 0 ? [E.raised(1, { progress: "output", shown: "text" })] : []),
  ...(n % 3 === 0 ? [E.opened(id, 1)] : []),
];

/** A database with the runs of a dead process. */
const left = (count: number): Effect.Effect<string, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const address = yield* Databases.empty;
    const written = Effect.flatMap(Databases.open({ address }), (dead) =>
      Effect.forEach(idsOf(count), (id, n) => dead.write(id, lived(id, n)), { concurrency: 50 }),
    );
    yield* Effect.scoped(written);
    return address;
  });

const claims = (recorder: Recorder, ids: ReadonlyArray<string>) =>
  Effect.forEach(ids, (id) => Effect.result(recorder.claim(id)), { concurrency: "unbounded" });

const reasonOf = (result: Result.Result<unknown, RecorderError> | undefined): string | undefined =>
  result === undefined || Result.isSuccess(result) ? undefined : result.failure.reason;

describe("claims of many runs in PostgreSQL", () => {
  it.live("give each run to one of the processes that claim all of them at once, in any order", () =>
    Effect.gen(function* () {
      const address = yield* left(many);
      const [one, other] = [yield* Databases.open({ address }), yield* Databases.open({ address })];
      const ids = idsOf(many);
      const [first, backwards] = yield* Effect.all([claims(one, ids), claims(other, ids.toReversed())], {
        concurrency: 2,
      });
      const second = backwards.toReversed();
      for (const [n, id] of ids.entries()) {
        const results = [first[n], second[n]];
        const won = results.flatMap((it) => (it !== undefined && Result.isSuccess(it) ? [it.success] : []));
        assert.deepStrictEqual(won, [E.folded(lived(id, n))], id);
        assert.deepStrictEqual(
          results.flatMap((it) => reasonOf(it) ?? []),
          ["owned"],
          id,
        );
        // Only the process that has claimed a run drives it.
        const [driver, loser] = reasonOf(first[n]) === undefined ? [one, other] : [other, one];
        assert.strictEqual((yield* Effect.flip(loser.write(id, [E.noted(7)]))).reason, "fenced", id);
        yield* driver.write(id, [E.noted(7)]);
      }
    }).pipe(Effect.scoped),
  );

  it.live("that are ready together share their transactions, and their first writes share one, too", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* left(many));
      const recorder = yield* Databases.open({ address: proxy.address });
      const ids = idsOf(many);
      const before = proxy.statements.length;
      const results = yield* claims(recorder, ids);
      assert.isTrue(results.every(Result.isSuccess));
      const begun = () => proxy.statements.slice(before).filter((sql) => /^BEGIN\b/.test(sql)).length;
      assert.isAtMost(begun(), 5);
      const written = proxy.statements.length;
      yield* Effect.forEach(ids, (id) => recorder.write(id, [E.opened(id, 2), E.ended()]), {
        concurrency: "unbounded",
      });
      assert.isAtMost(begun(), 10);
      assert.isAtMost(proxy.statements.length - written, 50, "incidents are put together");
      for (const [n, id] of ids.entries()) {
        const expected = E.folded([...lived(id, n), E.opened(id, 2), E.ended()]);
        assert.deepStrictEqual(yield* record(recorder, id), expected, id);
      }
    }).pipe(Effect.scoped),
  );

  it.live("are refused each for its own reason, and a damaged row affects no other", () =>
    Effect.gen(function* () {
      const address = yield* left(6);
      const [one, other] = [yield* Databases.open({ address }), yield* Databases.open({ address })];
      const admin = yield* Databases.client(address);
      yield* other.write("driven", [E.begun("driven")]);
      yield* other.write("over", [E.begun("over"), E.ended()]);
      yield* one.claim("r0");
      yield* admin`UPDATE stream_recovery_parts SET body = 'x' WHERE kind = 'r'
        AND seq = (SELECT seq FROM stream_recovery_runs WHERE run_id = 'r1')`;
      const results = yield* claims(one, ["driven", "r0", "r1", "r2", "over", "r3", "nobody", "r3"]);
      assert.deepStrictEqual(results.map(reasonOf), [
        ...["owned", "owned", "corrupt", undefined],
        ...["run_ended", undefined, "unknown_run", "owned"],
      ]);
      yield* one.write("r3", [E.noted(7)]);
      yield* other.write("driven", [E.noted(7)]);
    }).pipe(Effect.scoped),
  );

  it.live("start again if another process has changed a row meanwhile, and see its changes", () =>
    Effect.gen(function* () {
      const address = yield* left(2);
      const other = yield* Databases.open({ address });
      yield* other.write("asks", [E.begun("asks"), E.opened("asks", 1), E.asked("asks", 1), E.parked("question")]);
      const proxy = yield* StatementProxy.make(address);
      const one = yield* Databases.open({ address: proxy.address });
      const locked = proxy.hold(/FOR UPDATE/);
      const claiming = yield* Effect.forkChild(claims(one, ["r0", "asks", "r1"]));
      yield* locked.reached;
      yield* other.answer({ run_id: "asks", revision: 1, choice: "retry", by: "person" });
      yield* other.claim("r1");
      yield* locked.release;
      const [first, asks, last] = yield* Fiber.join(claiming);
      assert.deepStrictEqual([first, last].map(reasonOf), [undefined, "owned"]);
      assert.strictEqual(asks !== undefined && Result.isSuccess(asks) ? asks.success.parked : undefined, "answered");
    }).pipe(Effect.scoped),
  );

  it.live("whose caller has left meanwhile are given back, and the others are kept", () =>
    Effect.gen(function* () {
      const address = yield* left(2);
      const proxy = yield* StatementProxy.make(address);
      const [one, other] = [yield* Databases.open({ address: proxy.address }), yield* Databases.open({ address })];
      const locked = proxy.hold(/FOR UPDATE/);
      const [stays, leaves] = [yield* Effect.forkChild(one.claim("r0")), yield* Effect.forkChild(one.claim("r1"))];
      yield* locked.reached;
      yield* Fiber.interrupt(leaves);
      const given = proxy.hold(/SET owner = NULL/, "reply");
      yield* locked.release;
      yield* Fiber.join(stays);
      yield* Effect.andThen(given.reached, given.release);
      assert.strictEqual((yield* Effect.flip(other.claim("r0"))).reason, "owned");
      assert.deepStrictEqual(
        (yield* other.orphans()).map(({ run_id }) => run_id),
        ["r1"],
      );
      yield* other.claim("r1");
      yield* one.write("r0", [E.noted(7)]);
    }).pipe(Effect.scoped),
  );
});

describe("the recovery of many runs by two processes", () => {
  it.live("decides each run once", () =>
    Effect.gen(function* () {
      const address = yield* left(many);
      const [one, other] = [yield* Databases.open({ address }), yield* Databases.open({ address })];
      const recovered = (recorder: Recorder) =>
        Effect.provideService(CrashRecovery.recover({ unresumable: () => "client_gone" }), RunRecorder, recorder);
      const reports = yield* Effect.all([recovered(one), recovered(other)], { concurrency: 2 });
      const decided = reports.flatMap(({ runs }) => runs).filter(({ outcome }) => outcome !== "skipped");
      assert.deepStrictEqual(decided.map(({ run_id }) => run_id).sort(), idsOf(many).sort());
      for (const id of idsOf(many)) {
        const { end, incidents } = yield* record(one, id);
        assert.deepInclude(end, { state: "stopped", reason: "client_gone" }, id);
        assert.lengthOf(incidents, 1, id);
      }
    }).pipe(Effect.scoped),
  );
});
