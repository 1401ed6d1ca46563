/**
 * Tests that hold for every store of a former version; test/fixtures/stores/README.md describes their contents.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema, type Scope } from "effect";
import { runText } from "../../../src/cli/runs/RunText.ts";
import { plainScreen } from "../../../src/cli/terminal/Screen.ts";
import { exportRun } from "../../../src/recorder/export/IncidentExport.ts";
import * as RunRecord from "../../../src/recorder/RunRecord.ts";
import { retainingOf } from "../../../src/recorder/retention/Retention.ts";
import * as S from "../../cli/Stored.ts";
import { driven, over } from "../../fixtures/stores/Kinds.ts";
import * as E from "../Entries.ts";
import * as Moves from "../transfer/Moves.ts";
import { type Recorder, record } from "./Bench.ts";

/** A copy of a store, opened by the current program. */
export interface Opened {
  readonly recorder: Recorder;
  /** Counts the rows of a table, named without its prefix. */
  readonly count: (table: string) => Effect.Effect<number>;
}

export interface Former {
  /** The version of the tables that its program created. */
  readonly version: number;
  readonly name: "sqlite" | "rows" | "partitions";
  readonly opened: Effect.Effect<Opened, unknown, Scope.Scope>;
  /** Tables with rows of a run besides `runs`. */
  readonly tables: ReadonlyArray<string>;
}

export const fileOf = (version: number, name: string): string =>
  fileURLToPath(new URL(`../../fixtures/stores/schema-${version}/${name}`, import.meta.url));

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ run: RunRecord.RunRecord })));

/** The lines that the former program exported, without their line endings. */
const linesOf = ({ name, version }: Former): ReadonlyArray<string> =>
  readFileSync(fileOf(version, `${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n");

/** The records of a store, oldest first. */
const recordsOf = (former: Former): ReadonlyArray<RunRecord.RunRecord> =>
  Moves.runsIn(linesOf(former)).map((line) => decode(line).run);

const idsOf = (records: ReadonlyArray<RunRecord.RunRecord>): ReadonlyArray<string> =>
  records.map(({ run_id }) => run_id);

const hasEnded = ({ state }: RunRecord.RunRecord): boolean => state === "ended";

/** Writes entries, and compares the result with the fold. */
const written = Effect.fnUntraced(function* (
  recorder: Recorder,
  before: RunRecord.RunRecord,
  entries: ReadonlyArray<RunRecord.Entry>,
) {
  yield* recorder.write(before.run_id, entries);
  assert.deepStrictEqual<unknown>(yield* record(recorder, before.run_id), RunRecord.applyAll(before, entries));
});

const reads = (former: Former) => {
  it.live("reads, lists, explains and exports every run", () =>
    Effect.gen(function* () {
      const { recorder } = yield* former.opened;
      const expected = recordsOf(former);
      assert.includeMembers([...idsOf(expected)], [...Object.keys(over), ...Object.keys(driven)]);
      const listed = yield* recorder.runs({ limit: 1_000 });
      assert.deepStrictEqual([...listed].reverse(), [...expected]);
      for (const run of expected) {
        assert.deepStrictEqual(yield* record(recorder, run.run_id), run);
        assert.deepStrictEqual(yield* recorder.incidents(run.run_id), run.incidents);
        const told = runText(run, new Set(), plainScreen(S.startedAt));
        assert.include(told, run.run_id);
        assert.strictEqual(exportRun(run).incidents.length, run.incidents.length);
      }
      const broken = yield* recorder.runs({ broken: true, limit: 1_000 });
      assert.deepStrictEqual(
        idsOf(broken),
        idsOf(expected.filter(({ incidents }) => incidents.length > 0)).toReversed(),
      );
    }).pipe(Effect.scoped),
  );

  it.live("moves every run, and its key for digests, into another store", () =>
    Effect.gen(function* () {
      const { recorder } = yield* former.opened;
      const [, ...now] = (yield* Moves.lines(recorder)).join("").trimEnd().split("\n");
      const [head = "", ...before] = linesOf(former);
      assert.deepStrictEqual(now, before);
      assert.strictEqual(yield* Moves.transfer(recorder).key, JSON.parse(head).digest_key);
    }).pipe(Effect.scoped),
  );
};

const goesOn = (former: Former) =>
  it.live("takes over the runs of a dead process, and answers their questions", () =>
    Effect.gen(function* () {
      const { recorder } = yield* former.opened;
      const before = new Map(recordsOf(former).map((run) => [run.run_id, run]));
      const of = (id: string) => before.get(id) ?? assert.fail(`the store has no run ${id}`);
      const orphans = idsOf(yield* recorder.orphans());
      assert.includeMembers([...orphans], [...Object.keys(driven), "interrupted"]);
      assert.notIncludeMembers([...orphans], ["asking", "offered", "finished"]);
      for (const id of Object.keys(driven)) {
        const claimed = yield* recorder.claim(id);
        // An open wait ends when its run is claimed, and has lasted until then.
        if (of(id).waiting === undefined) assert.deepStrictEqual(claimed, of(id));
        else assert.isAbove(claimed.waited_ms ?? 0, 250);
        yield* written(recorder, claimed, [
          { _tag: "RunResumed" },
          E.attempt(7, "replay"),
          E.raised(7, { progress: "output", shown: "text" }),
          E.opened(id, 7),
          E.ended({ attempts: 2 }),
        ]);
      }
      const asking = of("asking");
      const choice = asking.questions[0]?.choices[0] ?? assert.fail("it asks");
      const told = yield* recorder.answer({ run_id: "asking", revision: 1, choice, by: "person" });
      assert.strictEqual(told.questions[0]?.answer, choice);
      yield* recorder.claim("answered");
      yield* written(recorder, of("answered"), [
        { _tag: "RunResumed" },
        E.marked("answered", 1, "acted_on", "retry"),
        E.ended(),
      ]);
      // A tool that outlived its run and settled late.
      yield* written(recorder, of("finished"), [E.noted(60_000, "late_settle"), E.opened("finished", 9)]);
    }).pipe(Effect.scoped),
  );

const forgets = (former: Former) =>
  it.live("forgets what has ended, with all rows of it, and nothing else", () =>
    Effect.gen(function* () {
      const { count, recorder } = yield* former.opened;
      const [ended, open] = [recordsOf(former).filter(hasEnded), recordsOf(former).filter((it) => !hasEnded(it))];
      const retaining = retainingOf(recorder) ?? assert.fail("a store forgets what is old");
      assert.strictEqual(yield* retaining.deleteOld({ ageMs: 60_000 }), ended.length);
      assert.deepStrictEqual([...(yield* recorder.runs({ limit: 1_000 }))].reverse(), open);
      for (const { run_id } of ended) assert.isUndefined(yield* recorder.run(run_id));
      const parts = (of: (run: RunRecord.RunRecord) => number) => open.reduce((sum, run) => sum + of(run), 0);
      const left = yield* Effect.forEach(former.tables, count);
      const incidentsAndQuestions = parts(({ incidents, questions }) => incidents.length + questions.length);
      const records = former.name === "partitions" ? open.length - 1 : 0;
      assert.strictEqual(
        left.reduce((sum, rows) => sum + rows, 0),
        incidentsAndQuestions + records,
      );
    }).pipe(Effect.scoped),
  );

export const suite = (former: Former): void => {
  describe(`a store of tables of version ${former.version}: ${former.name}`, () => {
    reads(former);
    goesOn(former);
    forgets(former);
  });
};
