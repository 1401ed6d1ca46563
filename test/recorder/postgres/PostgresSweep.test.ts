import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Schema } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { explainable } from "../../../scripts/bench/store/Sweep.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as E from "../Entries.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** A step of a query plan, with the fields that describe its reads. */
interface Step {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: ReadonlyArray<Step>;
}

const Step: Schema.Codec<Step> = Schema.suspend(() =>
  Schema.Struct({
    "Node Type": Schema.String,
    "Relation Name": Schema.optionalKey(Schema.String),
    "Actual Rows": Schema.Number,
    "Actual Loops": Schema.Number,
    "Rows Removed by Filter": Schema.optionalKey(Schema.Number),
    Plans: Schema.optionalKey(Schema.Array(Step)),
  }),
);

const Explained = Schema.Array(Schema.Struct({ "QUERY PLAN": Schema.Array(Schema.Struct({ Plan: Step })) }));

const stepsOf = (step: Step): ReadonlyArray<Step> => [step, ...(step.Plans ?? []).flatMap(stepsOf)];

/** Rows that a step has read, including those it filtered out. */
const rowsOf = (step: Step): number =>
  (step["Actual Rows"] + (step["Rows Removed by Filter"] ?? 0)) * step["Actual Loops"];

/** The steps of a statement that read runs. */
const stepsOfRuns = Effect.fnUntraced(function* (admin: SqlClient, sql: string) {
  const rows = yield* admin.unsafe(`EXPLAIN (ANALYZE, FORMAT JSON) ${explainable(sql)}`);
  const [plan] = yield* Schema.decodeUnknownEffect(Explained)(rows);
  const steps = plan?.["QUERY PLAN"].flatMap(({ Plan }) => stepsOf(Plan)) ?? [];
  return steps.filter((step) => step["Relation Name"] === "stream_recovery_runs");
});

describe("a sweep in PostgreSQL", () => {
  it.live("reads one row per process that drives runs, however many runs they drive: 200,000 here", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const proxy = yield* StatementProxy.make(address);
      const recorder = yield* Databases.open({ address: proxy.address });
      yield* recorder.write("r", [E.begun("r")]);
      yield* admin`INSERT INTO stream_recovery_leases (id, label, started_at, expires_at, fenced, beats, lease_ms)
        SELECT 'lease-' || n, 'x', 0, extract(epoch FROM clock_timestamp()) * 1000 + 14000, 0, 1, 15000 FROM generate_series(1, 3) n`;
      yield* admin`INSERT INTO stream_recovery_runs
          (run_id, version, owner, state, provider, model, started_at, broken, record)
        SELECT 'many-' || n, 1, 'lease-' || (1 + n % 3), 'live', 'p', 'm', 0, 0, '{}' FROM generate_series(1, 200000) n`;
      yield* admin`ANALYZE stream_recovery_runs`;
      const before = proxy.statements.length;
      const { runs } = yield* Effect.provideService(CrashRecovery.recover(), RunRecorder, recorder);
      assert.deepStrictEqual(runs, []);
      const looks = new Set(
        proxy.statements.slice(before).filter((sql) => /^(?:SELECT|WITH)\b.*\bstream_recovery_runs\b/s.test(sql)),
      );
      assert.isAtLeast(
        looks.size,
        3,
        "processes that drive runs, runs that nobody drives, and runs that wait for an answer",
      );
      for (const sql of looks) {
        const steps = yield* stepsOfRuns(admin, sql);
        assert.isAbove(steps.length, 0, sql);
        assert.isTrue(
          steps.every((step) => /^Index/.test(step["Node Type"])),
          sql,
        );
        const read = steps.reduce((sum, step) => sum + rowsOf(step), 0);
        assert.isAtMost(read, 5, `four processes, and a look behind the last one: ${sql}`);
      }
    }).pipe(Effect.scoped),
  );
});

describe("the automatic deletion in PostgreSQL", () => {
  it.live("measures age by the server's time, and not by that of a process whose clock is ahead", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const recorder = yield* Databases.open({ address });
      const at = yield* Clock.currentTimeMillis;
      const dayMs = 24 * 60 * 60 * 1_000;
      for (const [id, days] of [["new", 1] as const, ["old", 31] as const]) {
        yield* recorder.write(id, [E.begun(id), E.attempt(1), E.ended({ at: at - days * dayMs })]);
      }
      const proxy = yield* StatementProxy.make(address);
      const last = proxy.hold(/^SELECT id FROM .*leases/);
      const clock = yield* Clock.Clock;
      const ahead = { ...clock, currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + 365 * dayMs };
      yield* Effect.provideService(Databases.open({ address: proxy.address, retention: {} }), Clock.Clock, ahead);
      yield* last.reached;
      assert.isDefined(yield* recorder.run("new"));
      assert.isUndefined(yield* recorder.run("old"));
      yield* last.release;
    }).pipe(Effect.scoped),
  );

  it.live("counts a bounded number of rows at a time, however many runs have ended: 100,000 here", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const proxy = yield* StatementProxy.make(address);
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("r", [E.begun("r")]);
      yield* admin`INSERT INTO stream_recovery_runs
          (run_id, version, state, provider, model, started_at, ended_at, broken, record, shelf)
        SELECT 'many-' || n, 1, 'ended', 'p', 'm', 0, 900, 0, '{}', 1
        FROM generate_series(1, 100000) n`;
      yield* admin`ANALYZE stream_recovery_runs`;
      const last = proxy.hold(/^SELECT id FROM .*leases/);
      yield* Databases.open({ address: proxy.address, retention: { runs: 100_000 } });
      yield* last.reached;
      yield* last.release;
      const looks = proxy.statements.filter((sql) => /^SELECT\b.*\bstream_recovery_runs\b.*\bOFFSET\b/s.test(sql));
      assert.isAtLeast(looks.length, 10);
      // A statement under EXPLAIN uses 1,000 for its numbers, and all runs ended before that.
      for (const sql of looks) {
        const read = (yield* stepsOfRuns(admin, sql)).reduce((sum, step) => sum + rowsOf(step), 0);
        assert.isAtMost(read, 20_000, sql);
      }
    }).pipe(Effect.scoped),
  );
});
