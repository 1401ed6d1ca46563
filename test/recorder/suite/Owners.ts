/**
 * Tests of every layer of RunRecorder: owners of runs, answers, digests, pages and deletion.
 */
import { assert } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import type { QuestionRecord, RunRecord } from "../../../src/recorder/RunRecord.ts";
import * as E from "../Entries.ts";
import { type Recorder, record, type Test } from "./Bench.ts";

const ids = (runs: ReadonlyArray<RunRecord>) => runs.map((run) => run.run_id);
const parked = (reason: NonNullable<RunRecord["parked"]>) => ({ _tag: "RunParked", reason }) as const;
const resumed = { _tag: "RunResumed" } as const;

export const owners = (test: Test): void => {
  test("a run that this process drives cannot be taken over", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      assert.deepInclude(yield* Effect.flip(recorder.claim("r")), { reason: "owned", run_id: "r" });
      yield* recorder.write("r", [E.raised(1, { shown: "text" })]);
    }));

  test("an unknown or ended run cannot be taken over", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.ended()]);
      assert.deepInclude(yield* Effect.flip(recorder.claim("r")), { reason: "run_ended", run_id: "r" });
      assert.deepInclude(yield* Effect.flip(recorder.claim("x")), { reason: "unknown_run", run_id: "x" });
    }));

  test("a parked run is taken over once, unchanged, and again after it was released", (recorder) =>
    Effect.gen(function* () {
      const entries = [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1), parked("question")];
      yield* recorder.write("r", entries);
      assert.deepStrictEqual(yield* recorder.claim("r"), E.folded(entries));
      assert.strictEqual((yield* Effect.flip(recorder.claim("r"))).reason, "owned");
      yield* recorder.release("r");
      assert.deepStrictEqual(yield* recorder.claim("r"), E.folded(entries));
      yield* recorder.write("r", [resumed, E.attempt(2)]);
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([...entries, resumed, E.attempt(2)]));
    }));

  test("a claimed run stays claimed while it is parked, even if a person answers it", (recorder) =>
    Effect.gen(function* () {
      const entries = [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1), parked("question")];
      yield* recorder.write("r", entries);
      yield* recorder.claim("r");
      yield* recorder.write("r", [E.noted(1)]);
      assert.strictEqual((yield* Effect.flip(recorder.claim("r"))).reason, "owned");
      yield* recorder.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" });
      assert.strictEqual((yield* Effect.flip(recorder.claim("r"))).reason, "owned");
      yield* recorder.write("r", [resumed, E.attempt(2)]);
      assert.strictEqual((yield* record(recorder, "r"))?.resumes, 1);
    }));

  test("a released run is not continued by a late write, and can still be taken over", (recorder) =>
    Effect.gen(function* () {
      const entries = [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1), parked("question")];
      yield* recorder.write("r", entries);
      const late = [[resumed], [E.attempt(2)], [E.noted(1), resumed, E.attempt(2)]];
      for (const write of late) {
        assert.deepInclude(yield* Effect.flip(recorder.write("r", write)), { reason: "fenced", run_id: "r" });
        yield* recorder.claim("r");
        yield* recorder.release("r");
        assert.deepInclude(yield* Effect.flip(recorder.write("r", write)), { reason: "fenced", run_id: "r" });
      }
      assert.deepStrictEqual(yield* recorder.claim("r"), E.folded(entries));
      yield* recorder.release("r");
      // Entries that are already on record change nothing, because a write of unknown outcome is repeated.
      yield* recorder.write("r", entries.slice(1, 2));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(entries));
    }));

  test("a run that was released live is not continued by a late write either", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      yield* recorder.release("r");
      assert.strictEqual((yield* Effect.flip(recorder.write("r", [E.attempt(2, "replay")]))).reason, "fenced");
      assert.deepStrictEqual(ids(yield* recorder.orphans()), ["r"]);
      yield* recorder.claim("r");
    }));

  test("of many simultaneous claims of one run, one succeeds", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), parked("recovered")]);
      const results = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.result(recorder.claim("r")), {
        concurrency: "unbounded",
      });
      assert.strictEqual(results.filter(({ _tag }) => _tag === "Success").length, 1);
    }));

  test("releasing an unclaimed or unknown run does nothing", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), parked("question")]);
      const before = yield* record(recorder, "r");
      yield* recorder.release("r");
      yield* recorder.release("nobody");
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
    }));
};

export const orphans = (test: Test): void => {
  test("are released runs and runs that their caller left, oldest first; not runs that are driven, wait or have ended", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("driven", [E.begun("driven"), E.attempt(1)]);
      yield* recorder.write("ended", [E.begun("ended"), E.ended()]);
      yield* recorder.write("given-back", [E.begun("given-back"), E.attempt(1)]);
      yield* recorder.write("waits", [E.begun("waits"), E.asked("waits", 1), parked("question")]);
      yield* recorder.write("left", [E.begun("left"), E.attempt(1), parked("interrupted")]);
      yield* recorder.write("decided", [E.begun("decided"), E.attempt(1), parked("recovered")]);
      yield* recorder.write("asks", [E.begun("asks"), E.asked("asks", 1)]);
      yield* recorder.release("given-back");
      yield* recorder.release("asks");
      assert.deepStrictEqual(ids(yield* recorder.orphans()), ["given-back", "left", "asks"]);
      assert.deepStrictEqual(ids(yield* recorder.orphans(1)), ["given-back"]);
      const [first] = yield* recorder.orphans();
      assert.deepStrictEqual(first, E.folded([E.begun("given-back"), E.attempt(1)]));
    }));

  test("are orphans until they are decided", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), parked("interrupted")]);
      yield* recorder.claim("r");
      yield* recorder.write("r", [E.opened("r", 1), E.asked("r", 1), parked("question")]);
      assert.deepStrictEqual(ids(yield* recorder.orphans()), []);
    }));

  test("are a hundred by default (L11)", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 101; index += 1) {
        yield* recorder.write(`r${index}`, [E.begun(`r${index}`), parked("interrupted")]);
      }
      const found = ids(yield* recorder.orphans());
      assert.deepStrictEqual([found.length, found[0], found.at(-1)], [100, "r0", "r99"]);
      assert.strictEqual((yield* recorder.orphans(1_000)).length, 101);
    }));
};

export const answers = (test: Test): void => {
  const question = (revision: number, more: Partial<QuestionRecord> = {}) => {
    const entry = E.asked("r", revision);
    if (entry._tag !== "QuestionAsked") throw new Error("asked asks");
    return { ...entry, question: { ...entry.question, ...more } };
  };
  const asking = [E.begun("r"), E.attempt(1), E.opened("r", 1), question(1)];
  const retry = { run_id: "r", revision: 1, choice: "retry", by: "person" } as const;
  const reasonOf = (recorder: Recorder, answer: Parameters<Recorder["answer"]>[0]) =>
    Effect.map(Effect.flip(recorder.answer(answer)), (error) => [error._tag, error.reason, error.run_id]);

  test("an answer counts once and names its source", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", asking);
      const answered = yield* recorder.answer(retry);
      const expected = E.folded([...asking, { _tag: "QuestionAnswered", revision: 1, answer: "retry", by: "person" }]);
      assert.deepStrictEqual(answered, expected);
      assert.deepStrictEqual(yield* record(recorder, "r"), expected);
      const again = yield* reasonOf(recorder, { ...retry, choice: "stop" });
      assert.deepStrictEqual(again, ["AnswerRefused", "already_answered", "r"]);
    }));

  test("of many simultaneous answers one counts", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", asking);
      const results = yield* Effect.forEach(
        ["retry", "accept", "stop", "retry", "stop"] as const,
        (choice) => Effect.result(recorder.answer({ ...retry, choice })),
        { concurrency: "unbounded" },
      );
      assert.strictEqual(results.filter(({ _tag }) => _tag === "Success").length, 1);
    }));

  test("the process that drives the run continues with the answer on record", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", asking);
      yield* recorder.answer(retry);
      yield* recorder.write("r", [E.marked("r", 1, "acted_on", "retry"), E.attempt(2, "replay")]);
      const { questions, state } = yield* record(recorder, "r");
      assert.deepStrictEqual([state, questions.map(({ answer }) => answer)], ["live", ["retry"]]);
    }));

  test("the answer of a parked run waits on record until a process takes the run over", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [...asking, parked("question")]);
      const answered = yield* recorder.answer(retry);
      assert.deepStrictEqual([answered.state, answered.parked], ["parked", "answered"]);
      assert.deepStrictEqual(yield* recorder.claim("r"), answered);
    }));

  test("an answer is refused with its reason, and nothing is changed", (recorder) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* reasonOf(recorder, retry), ["AnswerRefused", "unknown_run", "r"]);
      yield* recorder.write("r", asking.slice(0, 2));
      assert.deepStrictEqual(yield* reasonOf(recorder, retry), ["AnswerRefused", "no_question", "r"]);
      yield* recorder.write("r", asking.slice(2));
      const before = yield* record(recorder, "r");
      assert.deepStrictEqual(yield* reasonOf(recorder, { ...retry, revision: 2 }), [
        "AnswerRefused",
        "stale_revision",
        "r",
      ]);
      assert.deepStrictEqual(yield* reasonOf(recorder, { ...retry, choice: "continue" }), [
        "AnswerRefused",
        "not_offered",
        "r",
      ]);
      assert.deepStrictEqual(yield* record(recorder, "r"), before);
      yield* recorder.write("r", [E.raised(1, { progress: "output", shown: "text", text_through: 9 })]);
      assert.deepStrictEqual(yield* reasonOf(recorder, retry), ["AnswerRefused", "facts_grown", "r"]);
      yield* recorder.write("r", [E.ended()]);
      assert.deepStrictEqual(yield* reasonOf(recorder, retry), ["AnswerRefused", "run_ended", "r"]);
    }));

  test("an expired question accepts only its default, given as its expiry", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("r", [...asking.slice(0, 3), question(1, { default_choice: "stop", expires_at: 60_000 })]);
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(yield* reasonOf(recorder, retry), ["AnswerRefused", "expired", "r"]);
      const answered = yield* recorder.answer({ ...retry, choice: "stop", by: "expiry" });
      assert.deepInclude(answered.questions[0], { answer: "stop", answered_by: "expiry" });
    }));
};

export const keeping = (test: Test): void => {
  test("equal content has equal digests, which reveal nothing of it", (recorder) =>
    Effect.gen(function* () {
      const digest = yield* recorder.digest("a prompt");
      assert.match(digest, /^[0-9a-f]{64}$/);
      assert.strictEqual(yield* recorder.digest("a prompt"), digest);
      assert.notStrictEqual(yield* recorder.digest("another prompt"), digest);
      // Without the key the digest cannot be found by trial: this is the plain SHA-256 of the text.
      const bare = yield* Effect.promise(() => crypto.subtle.digest("SHA-256", new TextEncoder().encode("a prompt")));
      assert.notStrictEqual(Buffer.from(bare).toString("hex"), digest);
    }));

  test("ended runs are deleted by age and by number, others never", (recorder) =>
    Effect.gen(function* () {
      for (const at of [1, 2, 3, 4, 5]) {
        yield* recorder.write(`e${at}`, [E.begun(`e${at}`), E.opened(`e${at}`, 1), E.ended({ at: at * 100 })]);
      }
      yield* recorder.write("live", [E.begun("live")]);
      yield* recorder.write("asking", [E.begun("asking"), E.asked("asking", 1), parked("question")]);
      assert.strictEqual(yield* recorder.prune({}), 0);
      assert.strictEqual(yield* recorder.prune({ endedBefore: 200 }), 1);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["asking", "live", "e5", "e4", "e3", "e2"]);
      assert.strictEqual(yield* recorder.prune({ keep: 2 }), 2);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["asking", "live", "e5", "e4"]);
      assert.strictEqual(yield* recorder.prune({ keep: 0, endedBefore: 10_000 }), 2);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["asking", "live"]);
      assert.deepStrictEqual(yield* recorder.incidents("e5"), []);
      yield* recorder.write("e5", [E.begun("e5")]);
    }));

  test("two hundred and fifty ended runs are deleted in one call, even if they ended at one moment or out of order", (recorder) =>
    Effect.gen(function* () {
      for (let index = 0; index < 250; index += 1) {
        // Ends at 50 moments, five at each, in another order than that of the runs.
        const at = 100 + ((index * 7) % 50);
        yield* recorder.write(`r${index}`, [E.begun(`r${index}`), E.ended({ at })]);
      }
      yield* recorder.write("young", [E.begun("young"), E.ended({ at: 1_000 })]);
      assert.strictEqual(yield* recorder.prune({ endedBefore: 1_000 }), 250);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["young"]);
    }));

  test("ended runs are deleted by number in the order in which they ended, not in that in which they began", (recorder) =>
    Effect.gen(function* () {
      yield* recorder.write("long", [E.begun("long")]);
      for (const at of [1, 2, 3]) yield* recorder.write(`e${at}`, [E.begun(`e${at}`), E.ended({ at: at * 100 })]);
      yield* recorder.write("at once", [E.begun("at once"), E.ended({ at: 300 })]);
      yield* recorder.write("long", [E.ended({ at: 400 })]);
      assert.strictEqual(yield* recorder.prune({ keep: 3, endedBefore: 50 }), 2);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["at once", "e3", "long"]);
      assert.strictEqual(yield* recorder.prune({ keep: 2, endedBefore: 200 }), 1);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["at once", "long"]);
      assert.strictEqual(yield* recorder.prune({ keep: 2, endedBefore: 400 }), 1);
      assert.deepStrictEqual(ids(yield* recorder.runs()), ["long"]);
    }));

  test("lists continue before a given run, and may contain only broken runs", (recorder) =>
    Effect.gen(function* () {
      for (const [index, runId] of ["a", "b", "c", "d"].entries()) {
        yield* recorder.write(runId, [E.begun(runId, index), ...(index % 2 === 0 ? [E.opened(runId, 1)] : [])]);
      }
      assert.deepStrictEqual(ids(yield* recorder.runs({ before: "c" })), ["b", "a"]);
      assert.deepStrictEqual(ids(yield* recorder.runs({ before: "c", limit: 1 })), ["b"]);
      assert.deepStrictEqual(ids(yield* recorder.runs({ before: "a" })), []);
      assert.deepStrictEqual(ids(yield* recorder.runs({ broken: true })), ["c", "a"]);
      assert.deepStrictEqual(ids(yield* recorder.runs({ broken: true, before: "c", state: "live" })), ["a"]);
    }));
};
