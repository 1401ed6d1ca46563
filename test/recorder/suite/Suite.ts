/**
 * The tests that every layer of RunRecorder must pass: the memory layer and each durable one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, type Scope } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as E from "../Entries.ts";
import { type Recorder, record, refusal, type Test } from "./Bench.ts";
import { bounds } from "./Bounds.ts";
import { answers, keeping, orphans, owners } from "./Owners.ts";
import { crowds, writes } from "./Writes.ts";

/**
 * Tests a layer of RunRecorder.
 *
 * @param name name of the layer in titles
 * @param layer an empty store for each build
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
  describe(`${name} applies a write whole or not at all`, () => writes(test));
  describe(`${name} has one end for a run (L7)`, () => endings(test));
  describe(`${name} keeps questions`, () => questions(test));
  describe(`${name} lists runs`, () => lists(test));
  describe(`${name} serves many writers`, () => crowds(test));
  describe(`${name} knows which process drives a run`, () => owners(test));
  describe(`${name} finds orphans: they`, () => orphans(test));
  describe(`${name} accepts answers`, () => answers(test));
  describe(`${name} digests, forgets and pages`, () => keeping(test));
};

const records = (test: Test): void => {
  test("gives the same record as the pure fold, after every single write", (recorder) =>
    Effect.gen(function* () {
      const entries = E.life("r");
      for (const [index, entry] of entries.entries()) {
        yield* recorder.write("r", [entry]);
        assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(entries.slice(0, index + 1)), entry._tag);
      }
    }));

  test("gives the same record if everything is written at once", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(E.life("r")));
    }));

  test("facts only grow: a slower write revises nothing (L1)", (recorder) =>
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

  test("says where an attempt's text joins shown text, and how that was proven; the first word stays", (recorder) =>
    Effect.gen(function* () {
      const seams = Effect.map(record(recorder, "r"), ({ attempts }) => attempts.map(({ seam }) => seam));
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.attempt(2, "continue"), E.attempt(3, "continue")]);
      yield* recorder.write("r", [E.joined(2, 412)]);
      assert.deepStrictEqual(yield* seams, [undefined, { at: 412, proof: "anchor", proven: true }, undefined]);
      // A write of unknown outcome is repeated. A repeat that differs comes from a faulty program.
      yield* recorder.write("r", [E.joined(2, 412)]);
      yield* recorder.write("r", [E.joined(2, 7, "prefill"), E.joined(3, 900, "prefill")]);
      assert.deepStrictEqual(yield* seams, [
        undefined,
        { at: 412, proof: "anchor", proven: true },
        { at: 900, proof: "prefill", proven: true },
      ]);
    }));

  test("a seam of an unknown attempt changes nothing, and does not cause the rest of its write to be refused", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const before = yield* record(recorder, "r");
      yield* recorder.write("r", [E.joined(9, 3)]);
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
      yield* recorder.write("r", [E.joined(9, 3), E.attempt(9, "continue"), E.joined(9, 4)]);
      assert.deepStrictEqual((yield* record(recorder, "r")).attempts.at(-1)?.seam, {
        at: 4,
        proof: "anchor",
        proven: true,
      });
    }));

  test("an incident that is written again is present once, in its place and with its result", (recorder) =>
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

  test("returns a run's incidents oldest first, each as it was written (L9)", (recorder) =>
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

const endings = (test: Test): void => {
  test("no live entry is accepted after it", (recorder) =>
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

  test("late facts, their evidence and their incident are accepted", (recorder) =>
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

  test("a late seam is accepted, because the store was away during the run", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.attempt(2, "continue"), E.ended({ attempts: 2 })]);
      const before = yield* record(recorder, "r");
      yield* recorder.write("r", [E.joined(2, 60, "prefill")]);
      const late = yield* record(recorder, "r");
      assert.deepStrictEqual(late.attempts[1]?.seam, { at: 60, proof: "prefill", proven: true });
      assert.deepStrictEqual([late.state, late.end, late.questions], [before.state, before.end, before.questions]);
    }));

  test("in a completed run every broken attempt is recovered and none is final", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [
        E.begun("r"),
        E.opened("r", 1),
        E.marked("r", 1, "acted_on", "retry"),
        E.opened("r", 2),
        E.ended({ attempts: 3 }),
      ]);
      assert.deepStrictEqual(
        (yield* recorder.incidents("r")).map(({ status, answer }) => [status, answer]),
        [
          ["recovered", "retry"],
          ["recovered", undefined],
        ],
      );
    }));

  test("in a stopped run the incident that ended it is final, and nothing was recovered", (recorder) =>
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

  test("a question is answered once: the first answer is kept", (recorder) =>
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

  test("newest first, in any order of later writes", (recorder) =>
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

  test("by a text of their id, provider or model, by one of them, and by their start, all at once", (recorder) =>
    Effect.gen(function* () {
      const runs: ReadonlyArray<readonly [string, string, string | undefined]> = [
        ["run_a", "anthropic", "claude-Sonnet-4-5"],
        ["run_b", "openai", "gpt-5.1_codex"],
        ["run_C", "openai", undefined],
        ["run_d", "Ünïcode", "Éclair-100%"],
      ];
      for (const [at, [run_id, id, model]] of runs.entries()) {
        const provider = { id, ...(model === undefined ? {} : { model }) };
        yield* recorder.write(run_id, [{ _tag: "RunStarted", run_id, provider, at: at * 10 }]);
      }
      const searches: ReadonlyArray<readonly [RunRecorder.RunQuery, ReadonlyArray<string>]> = [
        [{ text: "" }, ["run_d", "run_C", "run_b", "run_a"]],
        [{ text: "OPENAI" }, ["run_C", "run_b"]],
        [{ text: "run_c" }, ["run_C"]],
        [{ text: "sonnet" }, ["run_a"]],
        [{ text: "N" }, ["run_d", "run_C", "run_b", "run_a"]],
        // Wildcards of a pattern are plain characters here.
        [{ text: "100%" }, ["run_d"]],
        [{ text: "5%" }, []],
        [{ text: "run_%" }, []],
        [{ text: "1_c" }, ["run_b"]],
        [{ text: "'; --" }, []],
        // The case of other letters matters, because databases disagree on it.
        [{ text: "Ünï" }, ["run_d"]],
        [{ text: "ünï" }, []],
        [{ model: "É" }, ["run_d"]],
        [{ model: "é" }, []],
        [{ model: "gpt" }, ["run_b"]],
        [{ model: "" }, ["run_d", "run_C", "run_b", "run_a"]],
        [{ provider: "open", model: "codex" }, ["run_b"]],
        [{ provider: "open", text: "claude" }, []],
        [{ startedFrom: 10 }, ["run_d", "run_C", "run_b"]],
        [{ startedBefore: 10 }, ["run_a"]],
        [{ startedFrom: 10, startedBefore: 30, limit: 1 }, ["run_C"]],
        [{ startedFrom: 10, startedBefore: 30, before: "run_C" }, ["run_b"]],
        [{ text: "open", state: "live", broken: true }, []],
        [{ text: "open", state: "live" }, ["run_C", "run_b"]],
      ];
      for (const [query, found] of searches) {
        assert.deepStrictEqual([query, yield* ids(recorder, query)], [query, found]);
      }
    }));

  test("at most the requested number, counted after the filter by state", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 6; index += 1) {
        yield* recorder.write(`r${index}`, [E.begun(`r${index}`, index), ...(index % 2 === 0 ? [E.ended()] : [])]);
      }
      assert.deepStrictEqual(yield* ids(recorder, { limit: 2 }), ["r5", "r4"]);
      assert.deepStrictEqual(yield* ids(recorder, { limit: 2, state: "ended" }), ["r4", "r2"]);
      assert.deepStrictEqual(yield* ids(recorder, { limit: 0 }), []);
    }));

  test("at most 100 by default (L11)", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 101; index += 1) yield* recorder.write(`r${index}`, [E.begun(`r${index}`, index)]);
      const listed = yield* ids(recorder);
      assert.deepStrictEqual([listed.length, listed[0], listed.at(-1)], [100, "r100", "r1"]);
    }));

  test("with everything on record about each", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* recorder.runs(), [E.folded(E.life("r"))]);
    }));
};
