/**
 * The commands with a PostgreSQL store instead of a file. They share their code and differ in when the store is opened and closed.
 */
import { once } from "node:events";
import { hostname } from "node:os";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { eventually } from "../../Polling.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { heard, start, run as typed } from "../CommandLine.ts";
import { logged, workersOf } from "../Workers.ts";
import { broken, driving } from "./Driving.ts";

/** The part of the demo's output that the test reads. */
interface Played {
  readonly rows: ReadonlyArray<{ readonly name: string; readonly attempts: number }>;
}

interface Listed {
  readonly runs: ReadonlyArray<{ readonly run_id: string; readonly attempts: number; readonly incidents: number }>;
}

/** The scenario of a run's id, without the suffix that distinguishes demos. */
const scenario = (runId: string): string => runId.replace(/-[0-9a-z]{5}(-sibling)?$/, "$1");

/** The only extra run of a scenario. */
const sibling = { name: "cooldown-of-a-sibling-sibling", attempts: 1 };

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => a.name.localeCompare(b.name);

describe("stream-recovery over PostgreSQL", () => {
  it.live("plays the demo, and lists, shows and decides again what it has recorded", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const ended = (...args: ReadonlyArray<string>) => Effect.promise(() => typed([...args, "--db", db]));
      const played = yield* ended("demo", "--only", "openai-chat", "--json");
      assert.strictEqual(played.code, 0, played.stderr);
      // The test compares every field that it reads with its expectation.
      const { rows } = JSON.parse(played.stdout) as Played;
      const listed = yield* ended("runs", "list", "--json", "--limit", "100");
      assert.strictEqual(listed.code, 0, listed.stderr);
      const { runs } = JSON.parse(listed.stdout) as Listed;
      assert.deepStrictEqual(
        runs.map(({ attempts, run_id }) => ({ name: scenario(run_id), attempts })).toSorted(byName),
        [...rows.map(({ attempts, name }) => ({ name, attempts })), sibling].toSorted(byName),
      );
      const run = runs.find(({ run_id }) => scenario(run_id) === "reset-after-head")?.run_id ?? "none";
      const shown = yield* ended("runs", "show", run);
      assert.strictEqual(shown.code, 0, shown.stderr);
      for (const said of [run, "nothing_shown", "completed"]) assert.include(shown.stdout, said);
      const again = yield* ended("backtest");
      assert.deepStrictEqual([again.code, again.stderr], [0, ""]);
      const counts = runs.flatMap(({ incidents }) => (incidents === 0 ? [] : [incidents]));
      const all = counts.reduce((sum, count) => sum + count, 0);
      assert.include(again.stdout, `${all} incidents of ${counts.length} runs`);
      assert.include(again.stdout, `(${all} of ${all})`);
    }).pipe(Effect.scoped),
  );

  it.live("cancels a run of one of two workers, and follows it to its end", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const { response, run, served } = yield* driving(db, ["--workers", "2"]);
      yield* logged(served, /a worker is ready/, 2);
      const watching = yield* Effect.acquireRelease(
        Effect.sync(() => start(["runs", "watch", run, "--db", db, "--every", "100"])),
        (child) => Effect.sync(() => child.kill("SIGKILL")),
      );
      const [watched, closed] = [heard(watching), once(watching, "close")];
      // It has seen the live run, so the end comes with a later poll.
      yield* eventually(() => (watched.stdout.includes("attempt 1") ? true : undefined));
      assert.notInclude(watched.stdout, "user_cancelled");
      const { code, stderr, stdout } = yield* Effect.promise(() => typed(["runs", "cancel", run, "--db", db]));
      assert.deepStrictEqual([code, stderr], [0, ""]);
      const [, driver = ""] = /owns the run \((\d+@[^)]+)\)/.exec(stdout) ?? [];
      const workers = [...workersOf(served).values()].map((pid) => `${pid}@${hostname()}`);
      assert.lengthOf(workers, 2);
      assert.include(workers, driver);
      assert.include(stdout, "stopped (user_cancelled)");
      assert.isTrue(yield* broken(response));
      const [watchCode] = yield* Effect.promise(() => closed);
      assert.strictEqual(watchCode, 1);
      assert.include(watched.stdout, "stopped (user_cancelled)");
    }).pipe(Effect.scoped),
  );
});
