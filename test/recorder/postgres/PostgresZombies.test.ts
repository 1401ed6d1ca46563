/**
 * Two processes meet over one PostgreSQL, each held at the statements of its transaction. Also checks the statements of a group.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RowChanged } from "../../../src/recorder/sql/SqlFailure.ts";
import * as SqlStore from "../../../src/recorder/sql/SqlStore.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import { sweptQuestions } from "../suite/SweptQuestions.ts";
import { volatileZombies, zombieRuns } from "../suite/ZombieRuns.ts";
import { type Meeting, type Side, zombies } from "../suite/Zombies.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** Two processes. A statement of one of them can be held in the middle of its transaction. */
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

const change = /^UPDATE \S*runs\b|^WITH [uv]\b/;

const points: Readonly<Record<string, readonly [RegExp, "request" | "reply", Side]>> = {
  "before its transaction": [/^BEGIN/, "request", "before"],
  "at its change, with what it has read": [change, "request", "before"],
  "at its commit": [/^COMMIT/, "request", "during"],
  "behind its commit, whose reply is on its way": [/^COMMIT/, "reply", "after"],
};

const meeting: Meeting<RecorderError> = {
  two: Effect.map(two, (both) => ({
    ...both,
    hold: (point) => {
      const [pattern, what] = points[point] ?? [];
      if (pattern === undefined) throw new Error(`no such point: ${point}`);
      return both.proxy.hold(pattern, what);
    },
  })),
  points: Object.fromEntries(Object.entries(points).map(([point, [, , side]]) => [point, side])),
};

zombies("Two processes over one PostgreSQL", meeting);
zombieRuns("A run over PostgreSQL", meeting);
volatileZombies("A run over PostgreSQL", meeting);
sweptQuestions("Two processes over one PostgreSQL", meeting);

describe("PostgresRunRecorder writes in groups", () => {
  it.live("with one statement per kind, however many runs a group has", () =>
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
      // Statements of the listening connection concern no run.
      const ofRuns = proxy.statements.slice(from).filter((sql) => !/^LISTEN|^SELECT pg_notify|^SELECT 1$/.test(sql));
      const kinds = ofRuns.map((sql) =>
        sql
          .split(/\s+/, 2)
          .join(" ")
          .replace(/\S*runs$/, "runs"),
      );
      const group = ["BEGIN ISOLATION", "SELECT id,"];
      assert.deepStrictEqual(kinds, [
        ...[...group, "WITH v", "COMMIT"],
        ...[...group, "UPDATE runs", "COMMIT"],
        ...[...group, "UPDATE runs", "COMMIT"],
      ]);
      assert.strictEqual((yield* slow.runs({ state: "ended", limit: 100 })).length, 60);
    }).pipe(Effect.scoped),
  );

  it.live("and a group that rests on another version of one of its runs changes none of them", () =>
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
