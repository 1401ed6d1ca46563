/**
 * Programs that record runs use the same variables for retention as a gateway over the same store.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Option } from "effect";
import { readRetention } from "../../../src/cli/command/Store.ts";
import * as DemoStore from "../../../src/cli/demo/DemoStore.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { everyRun, retentionDefault } from "../../../src/recorder/retention/Retention.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { inVariable } from "../../Variables.ts";
import { failure, printed } from "../Printed.ts";
import * as S from "../Stored.ts";

const [time, number] = ["STREAM_RECOVERY_KEEP_RUNS", "STREAM_RECOVERY_KEEP_RUNS_MAX"];

const dayMs = 24 * 3_600_000;

/** True if a run that ended 60 days ago is still present after a demo has opened its store. */
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
    // Retention runs once at the start, beside other work.
    for (let n = 0; n < 100; n += 1) {
      if ((yield* Effect.provideContext(run, recorder)) === undefined) return false;
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
    }
    return true;
  }),
);

describe("the retention of a demo and an agent", () => {
  it.live("follows the variables, so that a gateway that keeps runs forever loses none", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(readRetention(), retentionDefault);
      assert.isFalse(yield* keeps);
      yield* inVariable(time, "forever");
      assert.isTrue(yield* keeps);
      assert.deepInclude(readRetention(), { runs: everyRun });
      yield* inVariable(number, "7");
      assert.deepInclude(readRetention(), { runs: 7 });
    }).pipe(Effect.scoped),
  );

  it.live("is refused if the variables are invalid", () =>
    Effect.gen(function* () {
      yield* inVariable(time, "");
      yield* inVariable(number, "");
      assert.deepStrictEqual(readRetention(), retentionDefault);
      yield* inVariable(number, "-1");
      const said = `$${number}: expected a whole number, not below 0, got -1`;
      assert.strictEqual(readRetention(), said);
      const opened = Effect.scoped(DemoStore.open(Option.some("x.db"), true));
      assert.deepStrictEqual(failure(yield* printed(Effect.asVoid(opened))), ["refused", `demo: ${said}`]);
      yield* inVariable(number, "many");
      assert.strictEqual(readRetention(), `$${number}: expected a whole number, not below 0, got NaN`);
      yield* inVariable(time, "59s");
      assert.match(String(readRetention()), /^\$STREAM_RECOVERY_KEEP_RUNS: expected a duration/);
    }).pipe(Effect.scoped),
  );
});
