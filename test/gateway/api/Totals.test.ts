/**
 * Checks the counts of runs, and the number of records that counting reads.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as Totals from "../../../src/gateway/api/Totals.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as E from "../../recorder/Entries.ts";
import * as Runs from "../page/PageRuns.ts";
import { put } from "../page/Server.ts";

const memory = RunRecorder.layerMemory({ runsMax: 20_000 });

/** A recorder that counts the records it returns. */
const counting = Effect.gen(function* () {
  const recorder = yield* RunRecorder;
  const given = { records: 0 };
  const count = (records: number) =>
    Effect.sync(() => {
      given.records += records;
    });
  const counted: RunRecorder["Service"] = {
    ...recorder,
    runs: (query) => Effect.tap(recorder.runs(query), (found) => count(found.length)),
    run: (id) => Effect.tap(recorder.run(id), () => count(1)),
  };
  return { given, recorder: counted };
});

describe("the totals", () => {
  it.effect("count the ends of runs by rule, by provider and model, and the discarded content", () =>
    Effect.gen(function* () {
      yield* put(Runs.album());
      const totals = yield* yield* Totals.make(yield* RunRecorder);
      assert.deepInclude(totals, {
        runs: 16,
        live: 1,
        broken: 5,
        completed: 13,
        recovered: 3,
        asked: 1,
        open_questions: 1,
        stopped: 1,
      });
      assert.deepStrictEqual(totals.by_rule, [
        { rule: "nothing_shown", action: "auto_retry_once", decisions: 3 },
        { rule: "tool_calls_fenced", action: "auto_retry_once", decisions: 3 },
        { rule: "not_retryable", action: "do_not_retry", decisions: 1 },
        { rule: "tool_outcome_unknown", action: "ask_user", decisions: 1 },
      ]);
      assert.deepStrictEqual(totals.by_provider[0], {
        provider: "anthropic",
        model: "claude-sonnet-4-5",
        runs: 6,
        recovered: 3,
        asked: 0,
        stopped: 0,
        wasted_tokens: 3 * (18_211 * 2 + 402),
      });
      assert.deepStrictEqual(totals.wasted, {
        input_tokens: 3 * 18_211 * 2,
        output_tokens: 3 * 402,
        characters: 3 * 88,
        bytes: 3 * 169_497,
      });
      assert.deepStrictEqual([totals.complete, totals.since], [true, Runs.now - 3_600_000]);
    }).pipe(Effect.provide(memory)),
  );

  it.effect("omit a run whose record may be incomplete, until its own process has ended it", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const lost = E.ended({ state: "stopped", reason: "process_lost", assumed: true });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), lost]);
      const totals = yield* Totals.make(recorder);
      assert.deepInclude(yield* totals, { runs: 0, stopped: 0 });
      yield* recorder.write("r", [E.ended()]);
      yield* TestClock.adjust("1 minute");
      assert.deepInclude(yield* totals, { runs: 1, completed: 1 });
    }).pipe(Effect.provide(Layer.fresh(memory))),
  );

  it.effect("do not count a recovery that needed a person's answer", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("a")]);
      const recorder = yield* RunRecorder;
      yield* recorder.answer({ run_id: "a", revision: 1, choice: "continue", by: "person" });
      const end = { state: "completed", reason: "stop", attempts: 2, at: Runs.now } as const;
      yield* recorder.write("a", [
        { _tag: "IncidentMarked", incident: "a.1", status: "acted_on" },
        { _tag: "RunEnded", end },
      ]);
      const totals = yield* yield* Totals.make(recorder);
      assert.deepInclude(totals, { completed: 1, recovered: 0, asked: 1, open_questions: 0 });
    }).pipe(Effect.provide(memory)),
  );

  it.effect("read new records only, not all of them", () =>
    Effect.gen(function* () {
      yield* put(Array.from({ length: 1_000 }, (_, n) => Runs.calm(`run_${n}`, Runs.now + n)));
      yield* put([
        Runs.running("live"),
        ...Array.from({ length: 200 }, (_, n) => Runs.calm(`late_${n}`, Runs.now + n)),
      ]);
      const { given, recorder } = yield* counting;
      const look = yield* Totals.make(recorder);
      assert.strictEqual((yield* look).runs, 1_201);
      assert.isAtLeast(given.records, 1_201);
      given.records = 0;
      assert.strictEqual((yield* look).live, 1);
      assert.isAtMost(given.records, 51, "one page, and the run that has not ended");
      const end = { state: "completed", reason: "stop", attempts: 1, at: Runs.now } as const;
      yield* recorder.write("live", [{ _tag: "RunEnded", end }]);
      yield* put([Runs.stopped("new", Runs.now + 9_000)]);
      given.records = 0;
      assert.deepInclude(yield* look, { runs: 1_202, live: 0, completed: 1_201, stopped: 1 });
      assert.isAtMost(given.records, 101);
    }).pipe(Effect.provide(memory)),
  );

  it.effect("are bounded, and say so", () =>
    Effect.gen(function* () {
      yield* put(Array.from({ length: Totals.totalsRunsMax + 60 }, (_, n) => Runs.calm(`run_${n}`, Runs.now + n)));
      const look = yield* Totals.make(yield* RunRecorder);
      for (const expected of [Totals.totalsRunsMax, Totals.totalsRunsMax]) {
        assert.deepInclude(yield* look, { runs: expected, complete: false });
      }
      yield* put([Runs.calm("newest", Runs.now + 900_000)]);
      const totals = yield* look;
      assert.deepStrictEqual([totals.runs, totals.since], [Totals.totalsRunsMax, Runs.now + 61]);
    }).pipe(Effect.provide(memory)),
  );

  it.effect("forget deleted runs at the next recount, and include runs that a failed poll missed", () =>
    Effect.gen(function* () {
      yield* put(Array.from({ length: 120 }, (_, n) => Runs.calm(`run_${n}`, Runs.now + n)));
      const { recorder } = yield* counting;
      let pages = 0;
      const failing: RunRecorder["Service"] = {
        ...recorder,
        runs: (query) => {
          pages += 1;
          return pages === 2 ? Effect.as(recorder.claim("nobody"), []) : recorder.runs(query);
        },
      };
      const look = yield* Totals.make(failing);
      assert.strictEqual((yield* Effect.flip(look)).reason, "unknown_run");
      assert.strictEqual((yield* look).runs, 120);
      yield* recorder.prune({ keep: 10 });
      assert.strictEqual((yield* look).runs, 120);
      yield* TestClock.adjust(Totals.totalsRecountMs);
      assert.strictEqual((yield* look).runs, 10);
    }).pipe(Effect.provide(Layer.fresh(memory))),
  );
});
