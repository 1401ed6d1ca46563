/**
 * Moves a file of runs with the command line; each call is a separate process.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CommandLine from "../CommandLine.ts";
import * as S from "../Stored.ts";
import * as KilledImport from "./KilledImport.ts";

const folder = mkdtempSync(join(tmpdir(), "moves-"));
const at = (name: string) => join(folder, name);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (args: ReadonlyArray<string>, input?: string) =>
  CommandLine.run(
    ["runs", ...args],
    { env: { ...process.env, NO_COLOR: "1", STREAM_RECOVERY_DB: at("none.db") } },
    input,
  );

/** Stores runs, and calls `body` while their process lives. */
const whileDriven = <A>(file: string, body: () => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* recorder.write("over", S.stopped("over"));
      yield* recorder.write("asks", S.asking("asks"));
      yield* recorder.write("halfway", S.halfway("halfway"));
      return yield* Effect.promise(body);
    }).pipe(Effect.provide(SqlRunRecorder.layerFile({ file, retention: false }))),
  );

describe("runs export --all and runs import", () => {
  it("move everything except runs with a live owner, and those, too, once they have ended; a question is answered there", async () => {
    const [old, next, file] = [at("old.db"), at("next.db"), at("runs.jsonl")];
    const early = await whileDriven(old, () => run(["export", "--all", "--db", old, "--out", file]));
    assert.deepStrictEqual(
      [early.code, early.stdout, early.stderr],
      [
        1,
        "",
        "runs export: 2 runs\nruns export: 1 skipped, because a process owns them: end it and export again, or include them with --include-live\n",
      ],
    );
    assert.strictEqual((statSync(file).mode & 0o777).toString(8), "600");
    const first = await run(["import", "--db", next, file]);
    assert.deepStrictEqual(
      [first.code, first.stdout],
      [0, "2 runs added, 1 not in the file, because a process owned them\n"],
    );
    const whole = await run(["export", "--all", "--db", old]);
    assert.deepStrictEqual([whole.code, whole.stderr], [0, "runs export: 3 runs\n"]);
    const second = await run(["import", "--db", next, "--json"], whole.stdout);
    assert.deepStrictEqual(
      [second.code, JSON.parse(second.stdout)],
      [0, { dry_run: false, added: 1, same: 2, refused: 0, left_out: 0 }],
    );
    const back = await run(["export", "--all", "--db", next]);
    assert.deepStrictEqual(back.stdout.split("\n").slice(1).toSorted(), whole.stdout.split("\n").slice(1).toSorted());
    assert.match((await run(["list", "--db", next])).stdout, /halfway +.*! orphan/);
    assert.strictEqual((await run(["answer", "asks", "stop", "--db", next])).code, 0);
    const third = await run(["import", "--db", next], whole.stdout);
    assert.strictEqual(third.code, 1);
    assert.strictEqual(third.stdout, "0 runs added, 2 already present\n");
    assert.strictEqual(
      third.stderr,
      "runs import: asks: a different record with this id exists and stays\nruns import: one run not imported\n",
    );
  });

  it("can be repeated after a kill in the middle: runs that are already present are reported, none is duplicated or lost", async () => {
    const db = at("killed.db");
    const count = async () => {
      if (!(await readdir(folder)).includes("killed.db")) return 0;
      const file = new DatabaseSync(db, { readOnly: true });
      try {
        return Number(file.prepare("SELECT count(*) AS n FROM stream_recovery_runs").get()?.n);
      } catch {
        // The file has no tables yet.
        return 0;
      } finally {
        file.close();
      }
    };
    const again = await KilledImport.killed(db, count);
    assert.deepStrictEqual(
      [again.code, again.stdout],
      [0, `${KilledImport.runs - KilledImport.committed} runs added, ${KilledImport.committed} already present\n`],
    );
    const { stdout } = await run(["export", "--all", "--db", db]);
    assert.deepStrictEqual(KilledImport.said([stdout]), KilledImport.said(KilledImport.lines));
  });

  it("include a run with a live owner on request", async () => {
    const db = at("live.db");
    const live = await whileDriven(db, () => run(["export", "--all", "--include-live", "--db", db]));
    assert.deepStrictEqual([live.code, live.stderr], [0, "runs export: 3 runs\n"]);
    const dry = await run(["import", "--dry-run", "--db", at("dry.db")], live.stdout);
    assert.deepStrictEqual([dry.code, dry.stdout], [0, "3 runs would be added\n"]);
  });

  it("report an error in one line, with the exit codes of --help", async () => {
    const [db, file] = [at("wrong.db"), at("wrong.jsonl")];
    const { stdout: whole } = await whileDriven(db, () => run(["export", "--all", "--include-live", "--db", db]));
    const lines = whole.trimEnd().split("\n");
    writeFileSync(file, `${lines.slice(0, -1).join("\n")}\n`);
    const to = ["--db", at("to.db")];
    const cases: ReadonlyArray<readonly [number, RegExp, ReadonlyArray<string>, string?]> = [
      [2, /^runs export: expected a run, or --all [^\n]+\n$/, ["export", "--db", db]],
      [2, /^runs export: expected a run or --all, [^\n]+\n$/, ["export", "asks", "--all", "--db", db]],
      [2, /^runs export: --name applies to one run[^\n]+\n$/, ["export", "--all", "--name", "bash", "--db", db]],
      [1, /^runs export: no run is on record: \S+none\.db does not exist\n$/, ["export", "--all"]],
      [
        2,
        /^runs export: cannot write \S+\/no\/x: [^\n]+\n$/,
        ["export", "--all", "--db", db, "--out", at("no/x"), "--include-live"],
      ],
      [
        2,
        /rest of the file was not imported\nruns import: \S+none\.jsonl: cannot be read: [^\n]+\n$/,
        ["import", ...to, at("none.jsonl")],
      ],
      [
        2,
        /^runs import: 0 runs added, 0 already present; [^\n]+\nruns import: \S+wrong\.jsonl: line 4: the file was cut off/,
        ["import", ...to, file],
      ],
      [2, /\nruns import: stdin: line 1: this is not a file of /, ["import", ...to], "SQLite format 3"],
      [
        2,
        /\nruns import: stdin: line 2: run\.state: expected [^\n]+\n$/,
        ["import", ...to],
        whole.replace(/"state":"\w+"/, '"state":7'),
      ],
      [3, /^runs import: \S+moves-\w+ [^\n]+\n$/, ["import", "--db", folder], whole],
    ];
    for (const [code, line, args, input] of cases) {
      const ended = await run(args, input);
      assert.match(ended.stderr, line, args.join(" "));
      assert.strictEqual(ended.code, code, `${args.join(" ")}: ${ended.stderr}`);
      assert.strictEqual(ended.stdout, "", args.join(" "));
    }
    assert.strictEqual(readFileSync(file, "utf8"), `${lines.slice(0, -1).join("\n")}\n`);
    assert.strictEqual((await run(["list", ...to])).code, 1, "nothing of a small file that was cut is on record");
  });
});
