/**
 * Runs the command line on files of runs; each call is a separate process.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Json from "../../../src/domain/Json.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CommandLine from "../CommandLine.ts";
import * as S from "../Stored.ts";

const folder = mkdtempSync(join(tmpdir(), "runs-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const how = (db: string) => ({ env: { ...process.env, STREAM_RECOVERY_DB: db, NO_COLOR: "1" } });
const start = (db: string, ...args: ReadonlyArray<string>) => CommandLine.start(args, how(db));
const run = (db: string, ...args: ReadonlyArray<string>) => CommandLine.run(args, how(db));

/** Writes a run into a file, like a process that then ends. */
const stored = (file: string, runs: Readonly<Record<string, ReadonlyArray<Entry>>>) =>
  Effect.runPromise(
    Effect.flatMap(RunRecorder, (recorder) =>
      Effect.forEach(Object.entries(runs), ([id, entries]) => recorder.write(id, entries)),
    ).pipe(Effect.provide(SqlRunRecorder.layerFile({ file, retention: false }))),
  );

describe("the command line on a file of runs", () => {
  it("finds the demo's runs in another process, and says how at the demo's end", async () => {
    const db = join(folder, "demo.db");
    const demo = await run(db, "demo", "--only", "call-complete-then-cut");
    assert.strictEqual(demo.code, 0, demo.stderr);
    const typed = [...demo.stdout.matchAll(/^ {2}npx stream-recovery (.+)$/gm)].map(([, command]) => command ?? "");
    assert.strictEqual(typed.length, 4);
    assert.match(typed[1] ?? "", /^runs show call-complete-then-cut-[0-9a-z]{5}$/);
    for (const command of typed) {
      const { code, stderr, stdout } = await run(db, ...command.split(" "));
      assert.strictEqual(code, 0, `${command}: ${stderr}`);
      assert.match(stdout, command.startsWith("runs") ? /tool_calls_fenced/ : /The record holds/);
    }
    const second = await run(db, "demo", "--only", "call-complete-then-cut", "--json");
    assert.strictEqual(second.code, 0, second.stderr);
    const listed = Json.record(Json.parse((await run(db, "runs", "list", "--json")).stdout)?.json);
    assert.strictEqual(Json.list(listed?.runs).length, 2, "a second demo keeps runs of its own");
  });

  it("plays the demo in memory if the file cannot be opened, and says so in one line", async () => {
    const db = join(folder, "a-folder.db");
    mkdirSync(db);
    const { code, stderr, stdout } = await run(db, "demo", "--only", "late-error");
    assert.strictEqual(code, 0);
    assert.match(stderr, /^demo: runs are kept in memory only: [^\n]*a-folder\.db[^\n]*\n\[1\/1\] ok {3}late-error\n$/);
    assert.notInclude(stdout, "runs list");
  });

  it("reports an error in one line, with the exit codes of --help", async () => {
    const damaged = join(folder, "damaged.db");
    writeFileSync(damaged, "no database");
    const cases: ReadonlyArray<readonly [number, RegExp, ReadonlyArray<string>]> = [
      [
        1,
        /^runs list: no run is on record: \S*none\.db does not exist\n$/,
        ["runs", "list", "--db", join(folder, "none.db")],
      ],
      [
        2,
        /^runs list: --db memory: this command cannot read the memory of another process; name a file or postgres:\/\/…\n$/,
        ["runs", "list", "--db", "memory"],
      ],
      [3, /^runs list: \S*damaged\.db [^\n]+\n$/, ["runs", "list", "--db", damaged]],
      [2, /^runs: unknown command "lst"; did you mean list\? See [^\n]+\n$/, ["runs", "lst"]],
    ];
    for (const [expected, line, args] of cases) {
      const { code, stderr } = await run("", ...args);
      assert.match(stderr, line);
      assert.strictEqual(code, expected, args.join(" "));
    }
    assert.strictEqual(readFileSync(damaged, "utf8"), "no database", "looking changes nothing");
    const { stdout } = await run("", "recover", "--help");
    for (const code of [0, 1, 2, 3]) assert.include(stdout, `\n    ${code}  `);
  });

  it("filters by the words of the table and by those of the record", async () => {
    const db = join(folder, "states.db");
    const waits: ReadonlyArray<Entry> = [
      ...S.asking("waits"),
      { _tag: "QuestionAnswered", revision: 1, answer: "retry", by: "person" },
    ];
    await stored(db, { asks: S.asking("asks"), over: S.stopped("over"), waits });
    const listed = async (state: string) => {
      const { stdout } = await run(db, "runs", "list", "--state", state, "--json");
      return Json.list(Json.record(Json.parse(stdout)?.json)?.runs).map((it) => Json.record(it)?.run_id);
    };
    assert.deepStrictEqual(await listed("waiting"), ["waits"]);
    assert.deepStrictEqual(await listed("parked"), ["waits"]);
    assert.deepStrictEqual(await listed("running"), []);
    assert.deepStrictEqual(await listed("live"), []);
    assert.include((await run(db, "runs", "list", "--state", "waiting")).stdout, "‖ waiting");
  });

  it("follows in one process the answer of another one", async () => {
    const db = join(folder, "two.db");
    await stored(db, { "asks-me": S.asking("asks-me") });
    const watching = start(db, "runs", "watch", "asks-me", "--every", "50", "--json");
    const steps: Array<unknown> = [];
    let answering: Promise<CommandLine.Ended> | undefined;
    for await (const line of createInterface({ input: watching.stdout })) {
      const step = Json.record(Json.parse(line)?.json)?.step;
      steps.push(step);
      if (String(step).startsWith("parked question")) answering = run(db, "runs", "answer", "asks", "stop");
    }
    assert.strictEqual(
      (await answering)?.stdout,
      "✓ asks-me: stop. The run has ended: stopped (tool_outcome_unknown).\n",
    );
    assert.include(steps, "answer 1");
    assert.strictEqual(steps.at(-1), "end");
    assert.strictEqual(new Set(steps).size, steps.length);
  });

  it("recovers the runs of a dead process, and asks about the tool that was running", async () => {
    const db = join(folder, "crash.db");
    await stored(db, { "in-a-tool": S.halfway("in-a-tool") });
    assert.include((await run(db, "runs", "list")).stdout, "! orphan");
    const recovered = await run(db, "recover");
    assert.strictEqual(recovered.code, 0, recovered.stderr);
    assert.match(recovered.stdout, /in-a-tool +\? asks you +tool_outcome_unknown/);
    const { stdout } = await run(db, "runs", "answer", "in-a-tool", "it_ran");
    assert.match(stdout, /^✓ in-a-tool: it_ran\. /);
    assert.match((await run(db, "runs", "show", "in-a-tool")).stdout, /has run +it ran, according to a person/);
  });
});
