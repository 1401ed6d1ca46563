/**
 * Programs that write runs forget old ones by the variables that a gateway over the same store goes by.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Option, type Scope } from "effect";
import { retentionByVariables } from "../../../src/cli/command/Store.ts";
import * as DemoStore from "../../../src/cli/demo/DemoStore.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { everyRun, retentionDefault } from "../../../src/recorder/retention/Retention.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { failure, printed } from "../Printed.ts";
import * as S from "../Stored.ts";

/** A variable of the environment, until the scope ends. */
const variable = (name: string, value: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        const before = process.env[name];
        process.env[name] = value;
        return before;
      }),
      (before) =>
        Effect.sync(() => {
          if (before === undefined) delete process.env[name];
          else process.env[name] = before;
        }),
    ),
  );

const [time, number] = ["STREAM_RECOVERY_KEEP_RUNS", "STREAM_RECOVERY_KEEP_RUNS_MAX"];

const dayMs = 24 * 3_600_000;

/** Whether a demo finds a run that ended 60 days ago when it has opened its store. */
const keeps = Effect.scoped(
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "kept-"));
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })));
    const file = join(folder, "runs.db");
    const run = Effect.flatMap(RunRecorder, (recorder) => recorder.run("old"));
    const old = S.recovered("old", Date.now() - 60 * dayMs);
    yield* Effect.flatMap(RunRecorder, (recorder) => recorder.write("old", old)).pipe(
      Effect.provide(SqlRunRecorder.layerFile({ file, retention: false })),
    );
    const { recorder } = yield* DemoStore.open(Option.some(file), true);
    // It looks once as it starts, beside what else it does.
    for (let n = 0; n < 100; n += 1) {
      if ((yield* Effect.provideContext(run, recorder)) === undefined) return false;
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
    }
    return true;
  }),
);

describe("how long a demo and an agent keep runs", () => {
  it.live("is what the variables say: a gateway that keeps them for ever loses none", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(retentionByVariables(), retentionDefault);
      assert.isFalse(yield* keeps);
      yield* variable(time, "forever");
      assert.isTrue(yield* keeps);
      assert.deepInclude(retentionByVariables(), { runs: everyRun });
      yield* variable(number, "7");
      assert.deepInclude(retentionByVariables(), { runs: 7 });
    }).pipe(Effect.scoped),
  );

  it.live("is refused where they say nothing that can be", () =>
    Effect.gen(function* () {
      yield* variable(time, "");
      yield* variable(number, "");
      assert.deepStrictEqual(retentionByVariables(), retentionDefault);
      yield* variable(number, "-1");
      const said = `$${number}: expected a whole number from 0 on, got -1`;
      assert.strictEqual(retentionByVariables(), said);
      const opened = Effect.scoped(DemoStore.open(Option.some("x.db"), true));
      assert.deepStrictEqual(failure(yield* printed(Effect.asVoid(opened))), ["refused", `demo: ${said}`]);
      yield* variable(number, "many");
      assert.strictEqual(retentionByVariables(), `$${number}: expected a whole number from 0 on, got NaN`);
      yield* variable(time, "59s");
      assert.match(String(retentionByVariables()), /^\$STREAM_RECOVERY_KEEP_RUNS: expected a duration/);
    }).pipe(Effect.scoped),
  );
});
