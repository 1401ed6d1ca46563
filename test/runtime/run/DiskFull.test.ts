/**
 * The behaviour of a run while the disk of its store is really full, so that SQLite itself refuses its pages (L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Result, Stream } from "effect";
import { TestClock } from "effect/testing";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as E from "../../recorder/Entries.ts";
import * as Folder from "../../recorder/sql/SqlFolder.ts";
import { type Recorder, record } from "../../recorder/suite/Bench.ts";
import * as S from "../Scripted.ts";

/** Writes runs until the store refuses one, and returns that error. */
const filled = (recorder: Recorder) =>
  Effect.gen(function* () {
    for (let n = 0; ; n += 1) {
      const written = yield* Effect.result(recorder.write(`filler-${n}`, [E.begun(`filler-${n}`)]));
      if (Result.isFailure(written)) return written.failure;
    }
  });

describe("While the disk of a store is full", () => {
  it.effect("text continues, even in a new run, and each end is on record once and marked when there is room", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const { recorder, sql } = yield* Folder.openWithClient({ file });
      const services = yield* S.servicesOver(recorder);
      const lines: Array<string> = [];
      const streamed = (runId: string) => {
        const provider = S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("c"), S.done]);
        const run = Context.get(services, StreamProcessor).run(S.options(provider, { runId, transcript: runId }));
        return Effect.forkChild(
          Stream.runForEach(run, (event) => Effect.sync(() => void lines.push(`${runId} ${S.line(event)}`))),
          { startImmediately: true },
        );
      };
      yield* streamed("before");
      yield* TestClock.adjust(500);
      yield* sql`PRAGMA max_page_count = 1`;
      const error = yield* filled(recorder);
      assert.deepInclude(error, { reason: "disk_full" });
      assert.match(error.message, /has no room left on its disk.*Free some space/);
      yield* streamed("behind");
      yield* TestClock.adjust("10 seconds");
      for (const run of ["before", "behind"]) {
        const shown = lines.filter((line) => line.startsWith(run)).map((line) => line.slice(run.length + 1));
        assert.deepStrictEqual(shown, ["attempt 1 first", "start", "a", "c", "done", "completed"]);
      }
      assert.isUndefined(yield* recorder.run("behind"));
      yield* sql`PRAGMA max_page_count = 1000000`;
      yield* TestClock.adjust("1 minute");
      for (const run of ["before", "behind"]) {
        assert.deepInclude((yield* record(recorder, run)).end, { state: "completed", attempts: 1 }, run);
      }
      const { evidence } = yield* record(recorder, "behind");
      assert.lengthOf(
        evidence.first.filter(({ detail, event }) => event === "shown" && detail === "unrecorded"),
        1,
      );
    }).pipe(Effect.scoped),
  );
});
