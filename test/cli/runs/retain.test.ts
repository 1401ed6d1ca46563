/**
 * `runs retain` deletes once what a program deletes periodically, and never a run that has not ended.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Effect, Option } from "effect";
import { retain } from "../../../src/cli/runs/retain.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../../recorder/Entries.ts";
import * as CommandLine from "../CommandLine.ts";
import { failure, printed } from "../Printed.ts";
import * as S from "../Stored.ts";

const folder = mkdtempSync(join(tmpdir(), "retain-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const day = 24 * 3_600_000;
const ago = (days: number) => Date.now() - days * day;
const defaults = { keepRuns: Option.none(), keepRunsMax: Option.none(), dryRun: false, json: true } as const;

/** Each kind of run that has not ended. All began before any of the ended ones. */
const undecided: Readonly<Record<string, ReadonlyArray<Entry>>> = {
  asking: S.asking("asking", ago(60)),
  live: S.halfway("live", ago(60)),
  offered: S.offered("offered", ago(60)),
  interrupted: S.interrupted("interrupted", ago(60)),
};

const ids = Effect.flatMap(RunRecorder, (recorder) =>
  Effect.map(recorder.runs({ limit: 1_000 }), (runs) => runs.map(({ run_id }) => run_id).sort()),
);

const json = (runs: number, dryRun: boolean) => JSON.stringify({ dry_run: dryRun, runs });

const layer = (name: string) => SqlRunRecorder.layerFile({ file: join(folder, `${name}.db`), retention: false });

describe("stream-recovery runs retain", () => {
  it.live("deletes runs that ended long ago, never what has not ended, and previews the deletion", () =>
    Effect.gen(function* () {
      yield* S.writing({ ...undecided, old: S.recovered("old", ago(40)), new: S.recovered("new", ago(20)) });
      const before = yield* ids;
      const dry = yield* printed(retain({ ...defaults, dryRun: true }));
      assert.strictEqual(dry.stdout, json(1, true));
      assert.deepStrictEqual(yield* ids, before);
      const wet = yield* printed(retain(defaults));
      assert.strictEqual(wet.stdout, json(1, false));
      assert.deepStrictEqual(
        yield* ids,
        before.filter((id) => id !== "old"),
      );
      const again = yield* printed(retain({ ...defaults, json: false }));
      assert.strictEqual(again.stdout, "deleted 0 ended runs");
      const everything = { ...defaults, keepRuns: Option.some("1m"), keepRunsMax: Option.some(0), json: false };
      const said = (yield* printed(retain({ ...everything, dryRun: true }))).stdout;
      assert.strictEqual(said, "one ended run would be deleted");
      assert.strictEqual((yield* printed(retain(everything))).stdout, "deleted one ended run");
      assert.deepStrictEqual(yield* ids, Object.keys(undecided).sort());
    }).pipe(Effect.provide(layer("age"))),
  );

  it.live("keeps runs of any age forever, unless their number is limited", () =>
    Effect.gen(function* () {
      const ended = Object.fromEntries(["a", "b", "c"].map((id) => [id, S.recovered(id, ago(4_000))]));
      yield* S.writing({ ...ended, ...undecided });
      const forever = { ...defaults, keepRuns: Option.some("forever") };
      assert.strictEqual((yield* printed(retain(forever))).stdout, json(0, false));
      assert.strictEqual((yield* printed(retain({ ...forever, keepRunsMax: Option.some(2) }))).stdout, json(1, false));
      assert.deepStrictEqual(yield* ids, ["b", "c", ...Object.keys(undecided)].sort());
    }).pipe(Effect.provide(layer("number"))),
  );

  it.live("keeps by number those that ended last, and each that ended less than a minute ago", () =>
    Effect.gen(function* () {
      const minutes = (count: number) => ago(count / (24 * 60));
      const recorder = yield* RunRecorder;
      const ended = (id: string, at: number) => [E.begun(id, at), E.ended({ at })];
      yield* recorder.write("long", [E.begun("long", minutes(10))]);
      yield* S.writing({ a: ended("a", minutes(9)), b: ended("b", minutes(8)) });
      yield* recorder.write("long", [E.ended({ at: minutes(7) })]);
      const most = (runs: number) => ({ ...defaults, keepRunsMax: Option.some(runs) });
      assert.strictEqual((yield* printed(retain({ ...most(1), dryRun: true }))).stdout, json(2, true));
      assert.strictEqual((yield* printed(retain(most(1)))).stdout, json(2, false));
      assert.deepStrictEqual(yield* ids, ["long"]);
      yield* S.writing({ now: ended("now", minutes(0.5)) });
      assert.strictEqual((yield* printed(retain({ ...most(0), dryRun: true }))).stdout, json(1, true));
      assert.strictEqual((yield* printed(retain(most(0)))).stdout, json(1, false));
      assert.deepStrictEqual(yield* ids, ["now"], "its client may come back");
    }).pipe(Effect.provide(layer("ends"))),
  );

  it.live("does not count a run whose end a wrong clock has put into the future", () =>
    Effect.gen(function* () {
      const hours = (count: number) => ago(count / 24);
      const ended = (id: string, at: number) => [E.begun(id, hours(9)), E.ended({ at })];
      yield* S.writing({ a: ended("a", hours(3)), b: ended("b", hours(2)), ahead: ended("ahead", ago(-365)) });
      const most = (runs: number) => ({ ...defaults, keepRunsMax: Option.some(runs) });
      for (const dryRun of [true, false])
        assert.strictEqual((yield* printed(retain({ ...most(1), dryRun }))).stdout, json(1, dryRun));
      assert.sameMembers([...(yield* ids)], ["b", "ahead"]);
    }).pipe(Effect.provide(layer("ahead"))),
  );

  it.live("refuses an invalid time, or one so short that a client's repeat would find nothing", () =>
    Effect.gen(function* () {
      for (const typed of ["30", "soon", "0d", "59s"]) {
        const [reason, said] = failure(yield* printed(retain({ ...defaults, keepRuns: Option.some(typed) })));
        assert.deepStrictEqual(
          [reason, said.startsWith("runs retain: --keep-runs: expected a duration")],
          ["refused", true],
        );
      }
      const most = { ...defaults, keepRunsMax: Option.some(-1) };
      assert.deepStrictEqual(failure(yield* printed(retain(most))), [
        "refused",
        "runs retain: --keep-runs-max: expected a whole number, not below 0, got -1",
      ]);
    }).pipe(Effect.provide(layer("refused"))),
  );

  it("reads the retention variables of `serve`, too, and creates no file", async () => {
    const file = join(folder, "typed.db");
    const runs = S.writing({ ...undecided, old: S.recovered("old", ago(3)) });
    await Effect.runPromise(Effect.provide(runs, layer("typed")));
    const env = { ...process.env, STREAM_RECOVERY_DB: file, STREAM_RECOVERY_KEEP_RUNS: "2d" };
    const kept = await CommandLine.run(["runs", "retain", "--keep-runs", "4d"], { env });
    assert.deepStrictEqual([kept.code, kept.stdout, kept.stderr], [0, "deleted 0 ended runs\n", ""]);
    const { code, stderr, stdout } = await CommandLine.run(["runs", "retain"], { env });
    assert.deepStrictEqual([code, stdout, stderr], [0, "deleted one ended run\n", ""]);
    const missing = await CommandLine.run(["runs", "retain", "--db", join(folder, "none.db")], { env });
    assert.strictEqual(missing.code, 1);
    assert.match(missing.stderr, /^runs retain: no run is on record: .*none\.db does not exist\n$/);
  });
});
