/**
 * `runs cancel` for runs that a gateway drives in another process, alone or in a worker, and for runs that a dead gateway has left.
 */
import { hostname } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { polled } from "../../Polling.ts";
import { run as typed } from "../CommandLine.ts";
import { folder, runsIn, type Served } from "../ServeProcess.ts";
import { logged, workersOf } from "../Workers.ts";
import { broken, driving } from "./Driving.ts";

const cancel = (db: string, run: string, ...more: ReadonlyArray<string>) =>
  Effect.promise(() => typed(["runs", "cancel", run, "--db", db, ...more]));

const drivers = (served: Served): ReadonlyArray<string> =>
  [served.child.pid ?? 0, ...workersOf(served).values()].map((pid) => `${pid}@${hostname()}`);

describe("stream-recovery runs cancel", () => {
  for (const [what, more] of [
    ["a gateway", []],
    ["a worker of a gateway", ["--workers", "2"]],
  ] as const)
    it.live(`signals ${what} that owns the run, names it, and is refused after the end`, () =>
      Effect.gen(function* () {
        const db = join(yield* folder, "runs.db");
        const { response, run, served } = yield* driving(db, more);
        if (more.length > 0) yield* logged(served, /a worker is ready/, 2);
        const { code, stderr, stdout } = yield* cancel(db, run);
        assert.deepStrictEqual([code, stderr], [0, ""]);
        const [, driver = ""] = /owns the run \((\d+@[^)]+)\)/.exec(stdout) ?? [];
        assert.include(drivers(served), driver);
        assert.include(stdout, "stopped (user_cancelled)");
        assert.isTrue(yield* broken(response));
        assert.deepStrictEqual(
          (yield* runsIn(db)).map(({ end }) => end?.reason),
          ["user_cancelled"],
        );
        const again = yield* cancel(db, run);
        assert.strictEqual(again.code, 1);
        assert.include(again.stderr, `runs cancel: ${run}: The run had already ended: stopped (user_cancelled)`);
        const unknown = yield* cancel(db, "none");
        assert.deepStrictEqual([unknown.code, unknown.stdout], [1, ""]);
        assert.include(unknown.stderr, 'no run has the id or prefix "none"');
      }).pipe(Effect.scoped),
    );

  it.live("ends a run whose gateway was killed, once its lease has expired, and prints JSON for machines", () =>
    Effect.gen(function* () {
      const db = join(yield* folder, "runs.db");
      const { response, run, served } = yield* driving(db);
      // The run is written after its first byte.
      yield* polled(Effect.map(runsIn(db), (runs) => (runs.length > 0 ? true : undefined)));
      served.child.kill("SIGKILL");
      yield* Effect.promise(() => served.exited);
      assert.isTrue(yield* broken(response));
      const { code, stdout } = yield* cancel(db, run, "--json");
      assert.strictEqual(code, 0);
      // The test compares every field that it reads with its expectation.
      const told = JSON.parse(stdout) as Record<string, unknown>;
      assert.deepInclude(told, { run_id: run, outcome: "unowned", state: "ended" });
      assert.deepNestedInclude(told, { "end.reason": "user_cancelled" });
      const [record] = yield* runsIn(db);
      assert.isTrue(record?.end?.assumed, "its process may have written more");
    }).pipe(Effect.scoped),
  );
});
