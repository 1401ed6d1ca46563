/**
 * What every layer of RunRecorder must do: the memory layer passes it, and so does each durable one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, type Scope } from "effect";
import { evidenceFirstMax, evidenceLastMax, incidentsMax } from "../../src/domain/Limits.ts";
import * as RunRecord from "../../src/recorder/RunRecord.ts";
import { type RecorderError, RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { seeded } from "../provider/Seeded.ts";
import * as E from "./Entries.ts";

type Recorder = RunRecorder["Service"];

/** Reads a run that must be there. */
const record = (recorder: Recorder, runId: string): Effect.Effect<RunRecord.RunRecord> =>
  Effect.gen(function* () {
    const found = yield* Effect.orDie(recorder.run(runId));
    return found ?? (yield* Effect.die(new Error(`no record of ${runId}`)));
  });

/** Why a write was refused; a write that was not refused fails the test. */
const refusal = (write: Effect.Effect<void, RecorderError>): Effect.Effect<RecorderError> =>
  Effect.catch(
    Effect.flatMap(write, () => Effect.die(new Error("the write was taken"))),
    Effect.succeed,
  );

/**
 * Tests a layer of RunRecorder.
 *
 * @param name the layer, as it stands in the titles
 * @param layer gives an empty store each time that it is built
 */
export const suite = <E>(name: string, layer: Layer.Layer<RunRecorder, E>): void => {
  const test = <F>(title: string, run: (recorder: Recorder) => Effect.Effect<void, F, Scope.Scope>) =>
    it.effect(title, () =>
      Effect.gen(function* () {
        yield* run(yield* RunRecorder);
      }).pipe(Effect.provide(Layer.fresh(layer))),
    );

  describe(`${name} records runs`, () => records(test));
  describe(`${name} keeps every buffer bounded (L11)`, () => bounds(test));
  describe(`${name} takes a write whole or not at all`, () => writes(test));
  describe(`${name} has one end for a run (L7)`, () => endings(test));
  describe(`${name} keeps questions`, () => questions(test));
  describe(`${name} lists runs`, () => lists(test));
  describe(`${name} serves many writers`, () => crowds(test));
};

type Test = <F>(title: string, run: (recorder: Recorder) => Effect.Effect<void, F, Scope.Scope>) => void;

const records = (test: Test): void => {
  test("gives the record that the pure fold gives, after every single write", (recorder) =>
    Effect.gen(function* () {
      const entries = E.life("r");
      for (const [index, entry] of entries.entries()) {
        yield* recorder.write("r", [entry]);
        assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(entries.slice(0, index + 1)), entry._tag);
      }
    }));

  test("gives the same record when everything is written at once", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(E.life("r")));
    }));

  test("facts only grow: a slower write takes nothing back (L1)", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      yield* recorder.write("r", [E.raised(1, { progress: "output", shown: "text", text_through: 2 })]);
      yield* recorder.write("r", [E.raised(1, { progress: "started" })]);
      const [only] = (yield* record(recorder, "r")).attempts;
      assert.deepInclude(only?.facts, { progress: "output", shown: "text", text_through: 2, delivery: "accepted" });
    }));

  test("facts belong to their own attempt (L3)", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.attempt(2, "replay"), E.raised(1, { shown: "text" })]);
      assert.deepStrictEqual(
        (yield* record(recorder, "r")).attempts.map((it) => [it.attempt, it.mode, it.facts.shown]),
        [
          [1, "first", "text"],
          [2, "replay", "nothing"],
        ],
      );
    }));

  test("an incident that is written again is there once, in its place and with what became of it", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        E.opened("r", 1),
        E.opened("r", 2),
        E.marked("r", 1, "acted_on", "retry"),
      ]);
      const before = yield* record(recorder, "r");
      yield* recorder.write("r", [E.opened("r", 1)]);
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));

  test("gives a run's incidents oldest first, each as it was written (L9)", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r")]);
      for (const n of [3, 1, 2]) yield* recorder.write("r", [E.opened("r", n)]);
      assert.deepStrictEqual(
        yield* recorder.incidents("r"),
        [3, 1, 2].map((n) => E.incident("r", n)),
      );
    }));

  test("knows nothing of a run that was never started", (recorder) =>
    Effect.gen(function* () {
      assert.isUndefined(yield* recorder.run("nobody"));
      assert.deepStrictEqual(yield* recorder.incidents("nobody"), []);
      assert.deepStrictEqual(yield* recorder.runs(), []);
    }));

  test("a record that was read does not change with later writes", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.opened("r", 1)]);
      const before = yield* record(recorder, "r");
      const copy: unknown = structuredClone(before);
      yield* recorder.write("r", [E.raised(1, { shown: "text" }), E.marked("r", 1, "acted_on"), E.noted(1), E.ended()]);
      assert.deepStrictEqual<unknown>(before, copy);
    }));
};

const bounds = (test: Test): void => {
  const keptMax = evidenceFirstMax + evidenceLastMax;

  test("evidence keeps its first 16 and last 48 records and counts what lies between", (recorder) =>
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

  test("many notes leave as many records as a few more than the bound", (recorder) =>
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

  test("incidents are bounded: recovered ones go first, then those acted on, the open ones last", (recorder) =>
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

  test("the final incident is never pushed out by late ones", (recorder) =>
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

const writes = (test: Test): void => {
  test("a misfit at its end leaves nothing of it", (recorder) =>
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

  test("any history in any packets gives what the fold gives, and a misfit packet leaves nothing", (recorder) =>
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

const endings = (test: Test): void => {
  test("nothing live is taken after it", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.asked("r", 1), E.ended({ reason: "first" })]);
      const before = yield* record(recorder, "r");
      const second = E.ended({ state: "stopped", reason: "second" });
      for (const entry of [E.attempt(2), E.asked("r", 2), E.answered(1, "retry"), second]) {
        const error = yield* refusal(recorder.write("r", [E.noted(1), entry]));
        assert.deepInclude(error, { reason: "run_ended", run_id: "r" }, entry._tag);
      }
      assert.strictEqual(before.end?.reason, "first");
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));

  test("late facts, their evidence and their incident are taken", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.ended()]);
      yield* recorder.write("r", [
        E.raised(1, { settled_through: 4 }),
        E.noted(9, "late_settle"),
        E.opened("r", 1, { status: "late" }),
      ]);
      const late = yield* record(recorder, "r");
      assert.deepStrictEqual(
        [late.state, late.attempts[0]?.facts.settled_through, late.evidence.first.at(-1)?.event, late.incidents.length],
        ["ended", 4, "late_settle", 1],
      );
      assert.strictEqual(late.incidents[0]?.status, "late");
    }));

  test("of a completed run every broken attempt is recovered and none is final", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        E.opened("r", 1),
        E.marked("r", 1, "acted_on", "retry"),
        E.opened("r", 2),
        E.ended(),
      ]);
      assert.deepStrictEqual(
        (yield* recorder.incidents("r")).map(({ status, answer }) => [status, answer]),
        [
          ["recovered", "retry"],
          ["recovered", undefined],
        ],
      );
    }));

  test("of a stopped run the incident that ended it is final, and nothing was recovered", (recorder) =>
    Effect.gen(function* () {
      const incident = E.incidentId("r", 2);
      yield* recorder.write("r", [
        E.begun("r"),
        E.opened("r", 1),
        E.marked("r", 1, "acted_on"),
        E.opened("r", 2),
        E.ended({ state: "stopped", reason: "text_shown", incident }),
      ]);
      const { end, incidents } = yield* record(recorder, "r");
      assert.deepStrictEqual(
        incidents.map(({ id, status }) => [id, status]),
        [
          [E.incidentId("r", 1), "acted_on"],
          [incident, "final"],
        ],
      );
      assert.strictEqual(end?.incident, incident);
    }));
};

const questions = (test: Test): void => {
  test("a question is open until it is answered", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.opened("r", 1), E.asked("r", 1)]);
      assert.strictEqual((yield* record(recorder, "r")).state, "asking");
      yield* recorder.write("r", [E.answered(1, "retry")]);
      const { state, questions } = yield* record(recorder, "r");
      assert.strictEqual(state, "live");
      assert.deepStrictEqual(questions, [
        {
          revision: 1,
          incident: E.incidentId("r", 1),
          rule: "text_shown",
          choices: ["retry", "accept", "stop"],
          answer: "retry",
        },
      ]);
    }));

  test("a question is answered once: the first answer stays", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.asked("r", 1), E.answered(1, "retry")]);
      yield* recorder.write("r", [E.answered(1, "stop")]);
      assert.deepStrictEqual(
        (yield* record(recorder, "r")).questions.map(({ answer }) => answer),
        ["retry"],
      );
    }));

  test("an answer to an older question leaves the open one open", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        E.asked("r", 1),
        E.answered(1, "retry"),
        E.attempt(2),
        E.asked("r", 2),
      ]);
      yield* recorder.write("r", [E.answered(1, "stop")]);
      const { state, questions } = yield* record(recorder, "r");
      assert.strictEqual(state, "asking");
      assert.deepStrictEqual(
        questions.map(({ answer }) => answer),
        ["retry", undefined],
      );
    }));

  test("an answer to a question that was never asked changes nothing", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.asked("r", 1)]);
      const before = yield* record(recorder, "r");
      yield* recorder.write("r", [E.answered(7, "stop")]);
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));
};

const lists = (test: Test): void => {
  const ids = (recorder: Recorder, ...query: Parameters<Recorder["runs"]>) =>
    Effect.map(recorder.runs(...query), (runs) => runs.map((run) => run.run_id));

  test("newest first, however they were written to since", (recorder) =>
    Effect.gen(function* () {
      for (const [index, runId] of ["a", "b", "c"].entries()) yield* recorder.write(runId, [E.begun(runId, index)]);
      yield* recorder.write("a", [E.attempt(1), E.noted(1)]);
      assert.deepStrictEqual(yield* ids(recorder), ["c", "b", "a"]);
    }));

  test("by state", (recorder) =>
    Effect.gen(function* () {
      for (const [index, runId] of ["a", "b", "c", "d"].entries())
        yield* recorder.write(runId, [E.begun(runId, index)]);
      yield* recorder.write("b", [E.asked("b", 1)]);
      yield* recorder.write("c", [E.ended()]);
      assert.deepStrictEqual(yield* ids(recorder, { state: "live" }), ["d", "a"]);
      assert.deepStrictEqual(yield* ids(recorder, { state: "asking" }), ["b"]);
      assert.deepStrictEqual(yield* ids(recorder, { state: "ended" }), ["c"]);
    }));

  test("at most as many as asked for, counted after the state", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 6; index += 1) {
        yield* recorder.write(`r${index}`, [E.begun(`r${index}`, index), ...(index % 2 === 0 ? [E.ended()] : [])]);
      }
      assert.deepStrictEqual(yield* ids(recorder, { limit: 2 }), ["r5", "r4"]);
      assert.deepStrictEqual(yield* ids(recorder, { limit: 2, state: "ended" }), ["r4", "r2"]);
      assert.deepStrictEqual(yield* ids(recorder, { limit: 0 }), []);
    }));

  test("at most 100 when no limit is named (L11)", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 101; index += 1) yield* recorder.write(`r${index}`, [E.begun(`r${index}`, index)]);
      const listed = yield* ids(recorder);
      assert.deepStrictEqual([listed.length, listed[0], listed.at(-1)], [100, "r100", "r1"]);
    }));

  test("with everything that is remembered of each", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* recorder.runs(), [E.folded(E.life("r"))]);
    }));
};

const crowds = (test: Test): void => {
  test("of different runs: each record is what its own writer wrote", (recorder) =>
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
