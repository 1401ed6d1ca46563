/**
 * Bounds that every layer of RunRecorder must keep (L11), and the order in which it drops data.
 */
import { assert } from "@effect/vitest";
import { Effect } from "effect";
import { evidenceFirstMax, evidenceLastMax, incidentsMax } from "../../../src/domain/Limits.ts";
import * as RunRecord from "../../../src/recorder/RunRecord.ts";
import * as E from "../Entries.ts";
import { record, type Test } from "./Bench.ts";

export const bounds = (test: Test): void => {
  const keptMax = evidenceFirstMax + evidenceLastMax;

  test("evidence keeps its first 16 and last 48 records and counts those between", (recorder) =>
    Effect.gen(function* () {
      const many = keptMax * 10;
      yield* recorder.write("r", [E.begun("r")]);
      for (let at = 0; at < many; at += 40) {
        yield* recorder.write(
          "r",
          Array.from({ length: 40 }, (_, index) => E.noted(at + index)),
        );
      }
      const { evidence } = yield* record(recorder, "r");
      assert.deepStrictEqual([evidenceFirstMax, evidenceLastMax], [16, 48]);
      assert.deepStrictEqual(
        evidence.first.map((it) => it.at_ms),
        Array.from({ length: 16 }, (_, index) => index),
      );
      assert.deepStrictEqual(
        evidence.last.map((it) => it.at_ms),
        Array.from({ length: 48 }, (_, index) => many - 48 + index),
      );
      assert.strictEqual(evidence.omitted, many - keptMax);
    }));

  test("many notes leave only a few more records than the bound", (recorder) =>
    Effect.gen(function* () {
      const sizes: Array<number> = [];
      for (const [runId, count] of [
        ["few", 100],
        ["many", 5_000],
      ] as const) {
        yield* recorder.write(runId, [E.begun(runId), ...Array.from({ length: count }, (_, at) => E.noted(at))]);
        const { first, last, omitted } = (yield* record(recorder, runId)).evidence;
        sizes.push(first.length + last.length);
        assert.strictEqual(omitted, count - keptMax);
      }
      assert.deepStrictEqual(sizes, [keptMax, keptMax]);
    }));

  test("terminal candidates outlive the other evidence", (recorder) =>
    Effect.gen(function* () {
      const candidates = [20, 30, 300];
      yield* recorder.write("r", [E.begun("r")]);
      for (let at = 0; at < 500; at += 1) {
        yield* recorder.write("r", [
          E.noted(at, candidates.includes(at) ? "terminal_candidate" : "progress", `n${at}`),
        ]);
      }
      const { evidence } = yield* record(recorder, "r");
      assert.strictEqual(evidence.last.length, evidenceLastMax);
      assert.deepStrictEqual(
        evidence.last.filter((it) => it.event === "terminal_candidate").map((it) => it.at_ms),
        candidates,
      );
      assert.strictEqual(evidence.last.at(-1)?.at_ms, 499);
    }));

  test("even terminal candidates have a bound, and the newest stay", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        ...Array.from({ length: 200 }, (_, at) => E.noted(at, "terminal_candidate", "stop")),
      ]);
      const { evidence } = yield* record(recorder, "r");
      assert.strictEqual(evidence.last.length, evidenceLastMax);
      assert.strictEqual(evidence.last.at(-1)?.at_ms, 199);
      assert.strictEqual(evidence.omitted, 200 - keptMax);
    }));

  test("attempts are bounded: the oldest go and are counted", (recorder) =>
    Effect.gen(function* () {
      const count = RunRecord.attemptsMax + 5;
      yield* recorder.write("r", [E.begun("r"), ...Array.from({ length: count }, (_, index) => E.attempt(index + 1))]);
      const { attempts, attempts_omitted } = yield* record(recorder, "r");
      assert.deepStrictEqual(
        [attempts.length, attempts[0]?.attempt, attempts.at(-1)?.attempt, attempts_omitted],
        [RunRecord.attemptsMax, 6, count, 5],
      );
    }));

  test("incidents are bounded: recovered ones are dropped first, then those acted on, the open ones last", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        ...Array.from({ length: incidentsMax }, (_, index) => E.opened("r", index + 1)),
        E.marked("r", 2, "acted_on"),
        E.marked("r", 4, "recovered"),
        E.marked("r", 6, "recovered"),
      ]);
      const gone: Array<number> = [];
      for (let n = incidentsMax + 1; n <= incidentsMax + 4; n += 1) {
        const before = (yield* recorder.incidents("r")).map((it) => it.attempt);
        yield* recorder.write("r", [E.opened("r", n)]);
        const after = (yield* recorder.incidents("r")).map((it) => it.attempt);
        assert.strictEqual(after.length, incidentsMax);
        assert.strictEqual(after.at(-1), n);
        gone.push(...before.filter((it) => !after.includes(it)));
      }
      assert.deepStrictEqual(gone, [4, 6, 2, 1]);
      assert.strictEqual((yield* record(recorder, "r")).incidents_omitted, 4);
    }));

  test("the final incident is never dropped for late ones", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        E.opened("r", 1),
        E.ended({ state: "stopped", reason: "text_shown", incident: E.incidentId("r", 1) }),
        ...Array.from({ length: incidentsMax * 2 }, (_, index) => E.opened("r", index + 2, { status: "late" })),
      ]);
      const incidents = yield* recorder.incidents("r");
      assert.strictEqual(incidents.length, incidentsMax);
      assert.deepStrictEqual(
        incidents.filter((it) => it.status === "final").map((it) => it.id),
        [E.incidentId("r", 1)],
      );
    }));

  test("questions are bounded: the newest stay", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        ...Array.from({ length: incidentsMax * 2 }, (_, at) => E.asked("r", at + 1)),
      ]);
      const { questions } = yield* record(recorder, "r");
      assert.deepStrictEqual([questions.length, questions.at(-1)?.revision], [incidentsMax, incidentsMax * 2]);
    }));
};
