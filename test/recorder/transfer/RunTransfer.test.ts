import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type * as RunRecord from "../../../src/recorder/RunRecord.ts";
import {
  endLine,
  fileLineBytesMax,
  headLine,
  type RunFileError,
  runLine,
} from "../../../src/recorder/transfer/RunFile.ts";
import { take } from "../../../src/recorder/transfer/RunFileReader.ts";
import { fileOf } from "../../../src/recorder/transfer/RunFileWriter.ts";
import type { RunTransfer } from "../../../src/recorder/transfer/RunTransfer.ts";
import * as E from "../Entries.ts";
import * as Folder from "../sql/SqlFolder.ts";
import { record } from "../suite/Bench.ts";
import * as Moves from "./Moves.ts";

const opened = Effect.flatMap(Folder.emptyPath, (file) => Folder.open({ file }));

const seeds = [1, 2, 3, 4, 5, 6];

/** A run whose first request has a digest. */
const begunOf = (id: string, transcript: string): RunRecord.Entry => ({
  _tag: "RunStarted",
  run_id: id,
  provider: E.provider,
  at: 1_000,
  transcript,
});

/** The last line of a file with the given number of runs. */
const endOf = (runs: number, left_out = 0) => `${JSON.stringify({ end: { runs, left_out } })}\n`;

describe("runs that are moved between stores", () => {
  for (const seed of seeds) {
    it.effect(`are unchanged in the new store, in order, and a second move changes nothing (seed ${seed})`, () =>
      Effect.gen(function* () {
        const [from, to] = [yield* opened, yield* opened];
        const ids = yield* Moves.filled(from, seed, 23);
        const { again, count, file, read, refused, second } = yield* Moves.moved(from, to, seed);
        assert.strictEqual(count, 23);
        assert.deepStrictEqual(refused, []);
        assert.deepStrictEqual(again, file);
        assert.deepStrictEqual(read, { added: 23, same: 0, refused: 0, leftOut: 0 });
        assert.deepStrictEqual(second, { added: 0, same: 23, refused: 0, leftOut: 0 });
        for (const id of ids) assert.deepStrictEqual(yield* record(to, id), yield* record(from, id));
        assert.deepStrictEqual(
          (yield* to.runs()).map(({ run_id }) => run_id),
          (yield* from.runs()).map(({ run_id }) => run_id),
        );
      }).pipe(Effect.scoped),
    );
  }

  it.effect(
    "keep a question that can be answered and a transcript that can be compared, because the key moves along",
    () =>
      Effect.gen(function* () {
        const [from, to] = [yield* opened, yield* opened];
        const transcript = yield* from.digest("what the user asked");
        yield* from.write("asks", [
          begunOf("asks", transcript),
          E.attempt(1),
          E.opened("asks", 1),
          E.asked("asks", 1),
          E.parked("question"),
        ]);
        assert.notStrictEqual(yield* to.digest("what the user asked"), transcript);
        yield* Moves.put(to, yield* Moves.lines(from));
        assert.strictEqual(yield* to.digest("what the user asked"), transcript);
        yield* to.answer({ run_id: "asks", revision: 1, choice: "retry", by: "person" });
        const claimed = yield* to.claim("asks");
        assert.strictEqual(claimed.parked, "answered");
        yield* to.write("asks", [{ _tag: "RunResumed" }, E.attempt(2, "replay"), E.ended({ attempts: 2 })]);
      }).pipe(Effect.scoped),
  );

  it.effect("leave their process behind: a run that has not ended has no owner in the new store", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* opened, yield* opened];
      yield* from.write("live", [E.begun("live"), E.attempt(1)]);
      yield* Moves.put(to, yield* Moves.lines(from));
      assert.deepStrictEqual(
        (yield* to.orphans()).map(({ run_id }) => run_id),
        ["live"],
      );
      yield* to.claim("live");
      yield* from.write("live", [E.attempt(2, "replay")]);
    }).pipe(Effect.scoped),
  );

  it.effect("are left out and counted while a live process drives them, and moved when it is gone", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const driver = yield* Scope.make();
      const driving = yield* Scope.provide(Folder.open({ file }), driver);
      yield* driving.write("live", [E.begun("live"), E.attempt(1)]);
      yield* driving.write("asks", [E.begun("asks"), E.opened("asks", 1), E.asked("asks", 1)]);
      yield* driving.write("parked", [E.begun("parked"), E.parked("interrupted")]);
      yield* driving.write("claimed", [E.begun("claimed"), E.parked("recovered")]);
      yield* driving.claim("claimed");
      yield* driving.write("ended", [E.begun("ended"), E.ended()]);
      const looking = yield* Folder.open({ file });
      const idsOf = (lines: ReadonlyArray<string>) =>
        Moves.runsIn(lines).map((line) => /"run_id":"(\w+)"/.exec(line)?.[1]);
      const partial = yield* Moves.lines(looking, { takesDriven: false });
      assert.deepStrictEqual(idsOf(partial), ["parked", "ended"]);
      assert.strictEqual(partial.at(-1), endOf(2, 3));
      const to = yield* opened;
      assert.deepStrictEqual((yield* Moves.put(to, partial)).read, { added: 2, same: 0, refused: 0, leftOut: 3 });
      yield* Scope.close(driver, Exit.void);
      const whole = yield* Moves.lines(looking, { takesDriven: false });
      assert.deepStrictEqual(idsOf(whole), ["live", "asks", "parked", "claimed", "ended"]);
      assert.deepStrictEqual((yield* Moves.put(to, whole)).read, { added: 3, same: 2, refused: 0, leftOut: 0 });
    }).pipe(Effect.scoped),
  );

  it.effect("of a killed process are moved once its lease is over", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      let killed = false;
      const driving = yield* Folder.open({ file }, { stopped: () => killed });
      yield* driving.write("live", [E.begun("live"), E.attempt(1)]);
      killed = true;
      const looking = yield* Folder.open({ file });
      assert.strictEqual((yield* Moves.lines(looking, { takesDriven: false })).at(-1), endOf(0, 1));
      const waited = yield* Effect.forkChild(looking.orphans(1, { waits: "all" }), { startImmediately: true });
      yield* TestClock.adjust("40 seconds");
      assert.isDefined(waited.pollUnsafe());
      assert.strictEqual((yield* Moves.lines(looking, { takesDriven: false })).at(-1), endOf(1));
    }).pipe(Effect.scoped),
  );
});

describe("a store that imports runs", () => {
  it.effect("keeps its own record if that differs, and accepts the others of the batch", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* opened, yield* opened];
      for (const id of ["a", "b", "c"]) yield* from.write(id, E.life(id));
      const file = yield* Moves.lines(from);
      yield* Moves.put(to, [file[0] ?? "", file[2] ?? "", endOf(1)]);
      yield* to.write("b", [E.noted(99, "late_settle")]);
      const own = yield* record(to, "b");
      const { read, refused } = yield* Moves.put(to, file);
      assert.deepStrictEqual(read, { added: 2, same: 0, refused: 1, leftOut: 0 });
      assert.deepStrictEqual(refused, [{ run_id: "b", reason: "differs" }]);
      assert.deepStrictEqual(yield* record(to, "b"), own);
    }).pipe(Effect.scoped),
  );

  it.effect("with its own key accepts ended runs, and no open run whose transcript it could not compare", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* opened, yield* opened];
      const transcript = yield* from.digest("x");
      yield* from.write("open", [begunOf("open", transcript), E.parked("recovered")]);
      yield* from.write("over", [begunOf("over", transcript), E.ended()]);
      yield* from.write("plain", [E.begun("plain"), E.parked("recovered")]);
      yield* to.write("own", [E.begun("own")]);
      const digest = yield* to.digest("x");
      const { read, refused } = yield* Moves.put(to, yield* Moves.lines(from));
      assert.deepStrictEqual(read, { added: 2, same: 0, refused: 1, leftOut: 0 });
      assert.deepStrictEqual(refused, [{ run_id: "open", reason: "foreign_key" }]);
      assert.strictEqual(yield* to.digest("x"), digest);
    }).pipe(Effect.scoped),
  );

  it.effect("accepts a batch whole or not at all", () =>
    Effect.gen(function* () {
      const [from, path] = [yield* opened, yield* Folder.emptyPath];
      const to = yield* Folder.open({ file: path });
      for (const id of ["a", "b", "c", "d", "e"]) yield* from.write(id, E.life(id));
      const refusing = new DatabaseSync(path);
      refusing.exec(`CREATE TRIGGER no BEFORE INSERT ON stream_recovery_runs WHEN NEW.run_id = 'd'
        BEGIN SELECT RAISE(ABORT, 'not this one'); END`);
      const { error, reached } = yield* Moves.put(to, yield* Moves.lines(from), { batchRuns: 2 });
      assert.strictEqual(error?._tag, "RecorderError");
      assert.strictEqual(reached.added, 2);
      assert.deepStrictEqual(
        (yield* to.runs()).map(({ run_id }) => run_id),
        ["b", "a"],
      );
      refusing.exec("DROP TRIGGER no");
      refusing.close();
      const { read } = yield* Moves.put(to, yield* Moves.lines(from), { batchRuns: 2 });
      assert.deepStrictEqual(read, { added: 3, same: 2, refused: 0, leftOut: 0 });
    }).pipe(Effect.scoped),
  );

  it.effect("adds nothing in a dry run, and keeps its key", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* opened, yield* opened];
      yield* Moves.filled(from, 1, 5);
      const digest = yield* to.digest("x");
      const { read } = yield* Moves.put(to, yield* Moves.lines(from), { dryRun: true, batchRuns: 2 });
      assert.deepStrictEqual(read, { added: 5, same: 0, refused: 0, leftOut: 0 });
      assert.deepStrictEqual(yield* to.runs(), []);
      assert.strictEqual(yield* to.digest("x"), digest);
    }).pipe(Effect.scoped),
  );

  it.effect("does not get a damaged row, which is counted and hides no other run", () =>
    Effect.gen(function* () {
      const path = yield* Folder.emptyPath;
      const from = yield* Folder.open({ file: path });
      for (const id of ["a", "b", "c"]) yield* from.write(id, E.life(id));
      const database = new DatabaseSync(path);
      database.exec("UPDATE stream_recovery_runs SET record = '{' WHERE run_id = 'b'");
      database.close();
      let damaged = 0;
      const file = yield* Moves.lines(from, {
        onProgress: (written) => {
          damaged = written.damaged;
        },
      });
      assert.strictEqual(damaged, 1);
      assert.strictEqual(file.at(-1), endOf(2));
    }).pipe(Effect.scoped),
  );
});

describe("a file of any length", () => {
  it.effect("is read one batch at a time, and so is a store that is written to one", () =>
    Effect.gen(function* () {
      const [runs, piece] = [2_000, 10];
      const key = "ab".repeat(32);
      let [made, most, kept] = [0, 0, 0];
      const record = E.folded(E.life("r"));
      if (record === undefined) return assert.fail("a life is a record");
      const texts = function* () {
        yield headLine(7, key);
        for (made = 0; made < runs; made += 1) yield runLine({ ...record, run_id: `run ${made}` });
        yield endLine({ runs, left_out: 0 });
      };
      const transfer: RunTransfer = {
        key: Effect.succeed(key),
        readPage: (from = 0, limit) => {
          most = Math.max(most, limit);
          const left = Math.min(limit, runs - from);
          const next = from + left < runs ? from + left : undefined;
          return Effect.succeed({
            runs: Array.from({ length: left }, () => ({ record, isDriven: false })),
            damaged: [],
            next,
          });
        },
        insertRuns: (_, records) => {
          most = Math.max(most, made - kept);
          kept += records.length;
          return Effect.succeed(records.map(() => "added" as const));
        },
      };
      let number = 0;
      const lines = Stream.map(Stream.fromIterable(texts(), { chunkSize: piece }), (text) => {
        number += 1;
        return { number, text: text.trim(), tooLong: false };
      });
      assert.strictEqual((yield* take(transfer, lines)).added, runs);
      assert.isAtMost(most, 100 + piece);
      most = 0;
      assert.strictEqual(yield* Stream.runCount(fileOf(transfer, { at: 7, takesDriven: false })), runs + 2);
      assert.isAtMost(most, 200);
    }),
  );
});

describe("an invalid file", () => {
  const cases: ReadonlyArray<{
    readonly name: string;
    readonly change: (file: ReadonlyArray<string>) => ReadonlyArray<string>;
    readonly error: Pick<RunFileError, "reason" | "line" | "field">;
    readonly says: RegExp;
    readonly added: number;
  }> = [
    {
      name: "without its last line, behind a whole batch",
      change: (file) => file.slice(0, -1),
      error: { reason: "cut", line: 6, field: "" },
      says: /^line 6: the file was cut off after this line/,
      added: 4,
    },
    {
      name: "cut in the middle of a line",
      change: (file) => [...file.slice(0, 4), (file[4] ?? "").slice(0, 500)],
      error: { reason: "bad_line", line: 5, field: "" },
      says: /^line 5: expected JSON/,
      added: 2,
    },
    {
      name: "that has lost a line on its way",
      change: (file) => file.toSpliced(2, 1),
      error: { reason: "cut", line: 6, field: "end.runs" },
      says: /^line 6: end.runs: expected 4, the number of runs before it, got \d+; export the file again/,
      added: 4,
    },
    {
      name: "with a value that no record has",
      change: (file) => file.with(3, (file[3] ?? "").replace('"state":"ended"', '"state":"over"')),
      error: { reason: "bad_line", line: 4, field: "run.state" },
      says: /^line 4: run\.state: expected .*"live"/,
      added: 2,
    },
    {
      name: "with a field that a newer version has added to a record",
      change: (file) => file.with(1, (file[1] ?? "").replace('"state":', '"moon":1,"state":')),
      error: { reason: "bad_line", line: 2, field: "run.moon" },
      says: /^line 2: run\.moon: /,
      added: 0,
    },
    {
      name: "of a newer format",
      change: (file) => file.with(0, (file[0] ?? "").replace('"version":1', '"version":2')),
      error: { reason: "newer_format", line: 1, field: "version" },
      says: /^line 1: version: its format is version 2, and this program knows version 1: update this program/,
      added: 0,
    },
    {
      name: "whose key is none",
      change: (file) => file.with(0, (file[0] ?? "").replace(/"digest_key":"\w+"/, '"digest_key":"secret"')),
      error: { reason: "bad_line", line: 1, field: "digest_key" },
      says: /^line 1: digest_key: expected/,
      added: 0,
    },
    {
      name: "with something behind its end",
      change: (file) => [...file, file[1] ?? ""],
      error: { reason: "bad_line", line: 8, field: "" },
      says: /^line 8: expected nothing after the last line/,
      added: 5,
    },
    {
      name: "that is another export",
      change: () => ['{"export":"run","export_version":2}'],
      error: { reason: "not_runs", line: 1, field: "" },
      says: /^line 1: this is not a file of `runs export --all`/,
      added: 0,
    },
    {
      name: "that is empty",
      change: () => [],
      error: { reason: "not_runs", line: 1, field: "" },
      says: /^line 1: the file is empty/,
      added: 0,
    },
  ];
  for (const { added, change, error, name, says } of cases) {
    it.effect(`${name}, is refused with line and field, and with the number of imported runs`, () =>
      Effect.gen(function* () {
        const [from, to] = [yield* opened, yield* opened];
        for (const id of ["a", "b", "c", "d", "e"]) yield* from.write(id, E.life(id));
        const found = yield* Moves.put(to, change(yield* Moves.lines(from)), { batchRuns: 2 });
        assert.strictEqual(found.error?._tag, "RunFileError");
        assert.deepInclude(found.error, error);
        assert.match(found.error?.message ?? "", says);
        assert.strictEqual(found.reached.added, added);
        assert.strictEqual((yield* to.runs()).length, added);
        assert.notInclude(found.error?.message ?? "", "secret");
      }).pipe(Effect.scoped),
    );
  }

  it("has lines long enough for the longest possible record", () => {
    // 64 attempts and 32 incidents with 256 rows of four labels each.
    assert.isAbove(fileLineBytesMax, (64 + 32) * 256 * 1_024);
  });
});
