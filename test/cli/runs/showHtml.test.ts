import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Console, Effect, Layer } from "effect";
import { Command } from "effect/cli";
import { showCommand } from "../../../src/cli/runs/show.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as Runs from "../../gateway/page/PageRuns.ts";
import { put } from "../../gateway/page/Server.ts";

/** A file with one run, and the output of the command. */
const typed = (...words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "show-html-"))),
      (it) => Effect.sync(() => rmSync(it, { recursive: true })),
    );
    const db = join(folder, "runs.db");
    yield* Effect.provide(put([Runs.recovered("run_a")]), Layer.fresh(SqlRunRecorder.layerFile({ file: db })));
    const out: Array<string> = [];
    const err: Array<string> = [];
    const console = {
      ...globalThis.console,
      log: (...texts: ReadonlyArray<unknown>) => void out.push(texts.join(" ")),
      error: (...texts: ReadonlyArray<unknown>) => void err.push(texts.join(" ")),
    };
    const argv = words.map((word) => word.replace("FOLDER", folder));
    const exit = yield* Effect.exit(Command.runWith(showCommand, { version: "0" })([...argv, "--db", db])).pipe(
      Effect.provideService(Console.Console, console),
    );
    return { exit, folder, out: out.join("\n"), err: err.join("\n") };
  }).pipe(Effect.provide(NodeServices.layer));

describe("runs show --html", () => {
  it.live("prints the picture of a run", () =>
    Effect.gen(function* () {
      const { exit, out } = yield* typed("run_a", "--html");
      assert.strictEqual(exit._tag, "Success");
      assert.match(out, /^<!doctype html>[\s\S]*Attempt 3[\s\S]*<\/html>\s*$/);
    }).pipe(Effect.scoped),
  );

  it.live("writes it to a file, and says so on stderr only", () =>
    Effect.gen(function* () {
      const { err, exit, folder, out } = yield* typed("run_a", "--html", "--out", "FOLDER/run.html");
      assert.strictEqual(exit._tag, "Success");
      assert.strictEqual(out, "");
      const text = readFileSync(join(folder, "run.html"), "utf8");
      assert.include(text, "tool_calls_fenced");
      assert.strictEqual(err, `written to ${join(folder, "run.html")} (${Buffer.byteLength(text)} bytes)`);
    }).pipe(Effect.scoped),
  );

  it.live("refuses options that exclude each other, and a file that cannot be written", () =>
    Effect.gen(function* () {
      const refused: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["--html", "--json"], "--html and --json"],
        [["--out", "FOLDER/x"], "--out needs --html"],
        [["--html", "--out", "FOLDER/none/x.html"], "cannot write"],
      ];
      for (const [flags, why] of refused) {
        const { err, exit, out } = yield* typed("run_a", ...flags);
        assert.deepStrictEqual([exit._tag, out], ["Failure", ""]);
        assert.include(err, why);
      }
    }).pipe(Effect.scoped),
  );
});
