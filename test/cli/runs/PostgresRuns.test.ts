/**
 * The commands whose store is a server in place of a file: they share their code, and what differs is when a store is opened and closed.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { run as typed } from "../CommandLine.ts";
import { logged, workersOf } from "../Workers.ts";
import { broken, driving } from "./Driving.ts";

describe("stream-recovery over PostgreSQL", () => {
  it.live("plays the demo, and lists, tells and decides again what it has put on record", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const ended = (...args: ReadonlyArray<string>) => Effect.promise(() => typed([...args, "--db", db]));
      const played = yield* ended("demo", "--only", "openai-chat");
      assert.strictEqual(played.code, 0, played.stderr);
      const listed = yield* ended("runs", "list", "--json");
      assert.strictEqual(listed.code, 0);
      // What a test looks at is compared with what it expects.
      const { runs } = JSON.parse(listed.stdout) as { readonly runs: ReadonlyArray<{ readonly run_id: string }> };
      assert.isAbove(runs.length, 10);
      const run = runs.at(-1)?.run_id ?? "";
      const shown = yield* ended("runs", "show", run);
      assert.strictEqual(shown.code, 0);
      assert.include(shown.stdout, run);
      const again = yield* ended("backtest");
      assert.deepStrictEqual([again.code, again.stderr], [0, ""]);
    }).pipe(Effect.scoped),
  );

  it.live("cancels a run of one of two workers, and follows it to that end", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const { response, run, served } = yield* driving(db, ["--workers", "2"]);
      yield* logged(served, /a worker serves/, 2);
      assert.strictEqual(workersOf(served).size, 2);
      const watching = typed(["runs", "watch", run, "--db", db, "--every", "100"]);
      const { code, stderr, stdout } = yield* Effect.promise(() => typed(["runs", "cancel", run, "--db", db]));
      assert.deepStrictEqual([code, stderr], [0, ""]);
      assert.include(stdout, "stopped (user_cancelled)");
      assert.isTrue(yield* broken(response));
      const watched = yield* Effect.promise(() => watching);
      assert.strictEqual(watched.code, 1);
      assert.include(watched.stdout, "user_cancelled");
    }).pipe(Effect.scoped),
  );
});
