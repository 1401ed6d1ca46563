/**
 * Tests that every layer of RunRecorder applies a write whole or not at all, beside any other writes.
 */
import { assert } from "@effect/vitest";
import { Effect } from "effect";
import { evidenceFirstMax, evidenceLastMax } from "../../../src/domain/Limits.ts";
import * as RunRecord from "../../../src/recorder/RunRecord.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";
import { record, refusal, type Test } from "./Bench.ts";

export const writes = (test: Test): void => {
  test("a misfit at its end discards all of it", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const before = yield* record(recorder, "r");
      const error = yield* refusal(
        recorder.write("r", [E.noted(1), E.raised(1, { shown: "text" }), E.opened("r", 1), E.begun("r")]),
      );
      assert.deepInclude(error, { _tag: "RecorderError", reason: "run_exists", run_id: "r" });
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));

  test("a misfit in a run's first write leaves no run", (recorder) =>
    Effect.gen(function* () {
      const error = yield* refusal(recorder.write("r", [E.begun("r"), E.attempt(1), E.begun("r")]));
      assert.strictEqual(error.reason, "run_exists");
      assert.isUndefined(yield* recorder.run("r"));
      yield* recorder.write("r", [E.begun("r")]);
      assert.strictEqual((yield* record(recorder, "r")).attempts.length, 0);
    }));

  test("a run is started once", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r", 1)]);
      const error = yield* refusal(recorder.write("r", [E.begun("r", 2)]));
      assert.deepInclude(error, { reason: "run_exists", run_id: "r" });
      assert.strictEqual((yield* record(recorder, "r")).started_at, 1);
    }));

  test("a wait is open until it ends, an attempt starts or the run ends, and the waited time grows until a person's word", (recorder) =>
    Effect.gen(function* () {
      const wait = { for: "path", since: 5, until: 9 } as const;
      const waited = (waited_ms: number, open = false): RunRecord.Entry => ({
        _tag: "RunWaited",
        waited_ms,
        ...(open ? { wait } : {}),
      });
      const seen = Effect.map(record(recorder, "r"), ({ waited_ms, waiting }) => [waited_ms, waiting]);
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), waited(0, true)]);
      assert.deepStrictEqual(yield* seen, [0, wait]);
      yield* recorder.write("r", [waited(700)]);
      assert.deepStrictEqual(yield* seen, [700, undefined]);
      yield* recorder.write("r", [waited(600, true)]);
      assert.deepStrictEqual(yield* seen, [700, wait]);
      yield* recorder.write("r", [E.attempt(2)]);
      assert.deepStrictEqual(yield* seen, [700, undefined]);
      yield* recorder.write("r", [E.opened("r", 1), E.asked("r", 1), E.answered(1, "retry")]);
      assert.deepStrictEqual(yield* seen, [0, undefined]);
      yield* recorder.write("r", [
        waited(50, true),
        E.opened("r", 2),
        E.asked("r", 2),
        E.answered(2, "stop"),
        E.ended(),
      ]);
      assert.deepStrictEqual(yield* seen, [50, undefined]);
      assert.strictEqual((yield* refusal(recorder.write("r", [waited(60)]))).reason, "run_ended");
    }));

  test("every entry of a run that was never started is refused", (recorder) =>
    Effect.gen(function* () {
      for (const entry of E.life("r").slice(1)) {
        const error = yield* refusal(recorder.write("r", [entry]));
        assert.deepInclude(error, { reason: "unknown_run", run_id: "r" }, entry._tag);
        assert.include(error.message, "r");
      }
      assert.deepStrictEqual(yield* recorder.runs(), []);
    }));

  test("an empty write changes nothing and starts no run", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("nobody", []);
      assert.isUndefined(yield* recorder.run("nobody"));
      yield* recorder.write("r", [E.begun("r")]);
      const before = yield* record(recorder, "r");
      yield* recorder.write("r", []);
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));

  test("any history in writes of any size gives what the fold gives, and a misfit discards its whole write", (recorder) =>
    Effect.gen(function* () {
      const seed = 0x5eed;
      const random = seeded(seed);
      for (let round = 0; round < 20; round += 1) {
        const runId = `r${round}`;
        let expected: RunRecord.RunRecord | undefined;
        for (let packet = 0; packet < 12; packet += 1) {
          const entries = randomEntries(runId, random, packet);
          const next = foldAll(expected, entries);
          const wrote = yield* Effect.result(recorder.write(runId, entries));
          const where = `seed ${seed}, run ${runId}, packet ${packet}: ${entries.map((it) => it._tag)}`;
          assert.strictEqual(wrote._tag, typeof next === "string" ? "Failure" : "Success", where);
          if (wrote._tag === "Failure") assert.strictEqual<unknown>(wrote.failure.reason, next, where);
          if (typeof next !== "string") expected = next;
          assert.deepStrictEqual(yield* recorder.run(runId), expected, where);
        }
      }
    }));
};

const foldAll = (
  before: RunRecord.RunRecord | undefined,
  entries: ReadonlyArray<RunRecord.Entry>,
): RunRecord.RunRecord | RunRecord.Misfit | undefined => {
  let folded = before;
  for (const entry of entries) {
    const next = RunRecord.apply(folded, entry);
    if (typeof next === "string") return next;
    folded = next;
  }
  return folded;
};

const randomEntries = (runId: string, random: () => number, packet: number): ReadonlyArray<RunRecord.Entry> => {
  const pick = (max: number) => 1 + Math.floor(random() * max);
  const any: ReadonlyArray<() => RunRecord.Entry> = [
    () => E.attempt(pick(5), "replay"),
    () => E.raised(pick(5), { shown: random() < 0.5 ? "text" : "reasoning", text_through: pick(9) }),
    () => E.joined(pick(5), pick(999), random() < 0.5 ? "anchor" : "prefill"),
    () => E.noted(pick(1_000), random() < 0.2 ? "terminal_candidate" : "progress"),
    () => E.opened(runId, pick(8)),
    () => E.marked(runId, pick(8), "acted_on", "retry"),
    () => E.asked(runId, pick(4)),
    () => E.answered(pick(4), "stop"),
    () => (random() < 0.2 ? E.begun(runId) : E.noted(pick(1_000))),
    () => (random() < 0.2 ? E.ended({ incident: E.incidentId(runId, pick(8)) }) : E.noted(pick(1_000))),
  ];
  const entries = Array.from({ length: pick(6) }, () => any[pick(any.length) - 1]?.() ?? E.noted(0));
  return packet === 0 && random() < 0.9 ? [E.begun(runId), ...entries] : entries;
};

export const crowds = (test: Test): void => {
  test("of different runs: each record contains exactly its own writer's entries", (recorder) =>
    Effect.gen(function* () {
      const runIds = Array.from({ length: 40 }, (_, index) => `r${index}`);
      const live = (runId: string) =>
        Effect.forEach(E.life(runId), (entry) => Effect.andThen(recorder.write(runId, [entry]), Effect.yieldNow), {
          discard: true,
        });
      yield* Effect.forEach(runIds, live, { concurrency: "unbounded", discard: true });
      for (const runId of runIds) assert.deepStrictEqual(yield* record(recorder, runId), E.folded(E.life(runId)));
      assert.strictEqual((yield* recorder.runs()).length, runIds.length);
    }));

  test("of one run: no entry is lost", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const count = evidenceFirstMax + evidenceLastMax;
      yield* Effect.forEach(
        Array.from({ length: count }, (_, at) => at),
        (at) => recorder.write("r", [E.noted(at), E.raised(1, { text_through: at })]),
        { concurrency: "unbounded", discard: true },
      );
      const { attempts, evidence } = yield* record(recorder, "r");
      assert.strictEqual(new Set([...evidence.first, ...evidence.last].map((it) => it.at_ms)).size, count);
      assert.strictEqual(attempts[0]?.facts.text_through, count - 1);
    }));

  test("of one new run: one of them starts it", (recorder) =>
    Effect.gen(function* () {
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index),
        (at) => Effect.result(recorder.write("r", [E.begun("r", at)])),
        { concurrency: "unbounded" },
      );
      const reasons = results.map((result) => (result._tag === "Failure" ? result.failure.reason : "started"));
      assert.strictEqual(reasons.filter((reason) => reason === "started").length, 1);
      assert.strictEqual(reasons.filter((reason) => reason === "run_exists").length, 19);
    }));

  test("of one open question: one answer counts (L7)", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.asked("r", 1)]);
      yield* Effect.forEach(
        ["retry", "accept", "stop"] as const,
        (answer) => recorder.write("r", [E.answered(1, answer)]),
        { concurrency: "unbounded", discard: true },
      );
      const [question] = (yield* record(recorder, "r")).questions;
      assert.include(["retry", "accept", "stop"], question?.answer);
      const first = question?.answer;
      yield* recorder.write("r", [E.answered(1, first === "stop" ? "retry" : "stop")]);
      assert.strictEqual((yield* record(recorder, "r")).questions[0]?.answer, first);
    }));
};
