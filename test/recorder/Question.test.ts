import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import * as Orphan from "../../src/recorder/Orphan.ts";
import { type AnswerRefusal, checkAnswer } from "../../src/recorder/Question.ts";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as L from "../runtime/crash/Lives.ts";
import { folded } from "./Entries.ts";

const textShown = L.facts(L.text);
const incident = L.incident(1, textShown);
const ask = [L.begun(), L.attempt(1), L.raised(1, textShown), L.opened(incident), L.asked(incident)];

const given = (more: Partial<Parameters<typeof checkAnswer>[1]> = {}) =>
  ({ run_id: L.runId, revision: 1, choice: "retry", by: "person", ...more }) as const;

const end: Entry = { _tag: "RunEnded", end: { state: "stopped", reason: "text_shown", attempts: 1, at: 9 } };

interface Case {
  readonly name: string;
  readonly entries: ReadonlyArray<Entry>;
  readonly answer?: Partial<Parameters<typeof checkAnswer>[1]>;
  readonly now?: number;
  readonly reason: AnswerRefusal | undefined;
}

const expiring = [...ask.slice(0, -1), L.asked(incident, { expires_at: 100, default_choice: "accept" })];
const cancelled = L.incident(2, textShown, { run: { user_cancelled: true } });
const second = L.incident(2, L.settled);

const cases: ReadonlyArray<Case> = [
  { name: "the newest open question, one of its choices", entries: ask, reason: undefined },
  { name: "a parked question", entries: [...ask, L.parked("question")], reason: undefined },
  { name: "a run that has ended", entries: [...ask, end], reason: "run_ended" },
  { name: "a run that has not asked", entries: ask.slice(0, 3), reason: "no_question" },
  { name: "an older question", entries: [...ask, L.asked(second, { revision: 2 })], reason: "stale_revision" },
  { name: "a question that was never asked", entries: ask, answer: { revision: 2 }, reason: "stale_revision" },
  { name: "a second answer", entries: [...ask, L.answered("stop")], reason: "already_answered" },
  { name: "the same answer again", entries: [...ask, L.answered("retry")], reason: "already_answered" },
  { name: "a choice that is not offered", entries: ask, answer: { choice: "continue" }, reason: "not_offered" },
  { name: "grown facts", entries: [...ask, L.raised(1, L.dispatched)], reason: "facts_grown" },
  { name: "a newer incident", entries: [...ask, L.opened(cancelled)], reason: "facts_grown" },
  { name: "a late incident", entries: [...ask, L.opened({ ...second, status: "late" })], reason: undefined },
  { name: "a run that went on", entries: [...ask, L.attempt(2, { mode: "replay" })], reason: "facts_grown" },
  { name: "a person before the expiry", entries: expiring, now: 99, reason: undefined },
  { name: "a person at the expiry", entries: expiring, now: 100, reason: "expired" },
  { name: "a program after the expiry", entries: expiring, answer: { by: "program" }, now: 101, reason: "expired" },
  {
    name: "the expiry itself",
    entries: expiring,
    answer: { choice: "accept", by: "expiry" },
    now: 100,
    reason: undefined,
  },
  {
    name: "an expiry that comes too early",
    entries: expiring,
    answer: { by: "expiry" },
    now: 99,
    reason: "not_expired",
  },
  {
    name: "an expiry that takes another choice",
    entries: expiring,
    answer: { by: "expiry" },
    now: 100,
    reason: "expired",
  },
];

describe("An answer", () => {
  for (const { answer, entries, name, now = 50, reason } of cases) {
    it(`to ${name}: ${reason ?? "counts"}`, () => {
      const refused = checkAnswer(folded(entries), given(answer), now);
      assert.strictEqual(refused?.reason, reason);
      if (refused !== undefined) assert.match(refused.message, /^r: \S/);
    });
  }

  it("to an unknown run: unknown_run", () => {
    assert.strictEqual(checkAnswer(undefined, given(), 0)?.reason, "unknown_run");
  });

  it("reports the current state in a refusal", () => {
    assert.match(checkAnswer(folded([...ask, L.answered("stop")]), given(), 0)?.message ?? "", /\(stop\)$/);
    assert.match(checkAnswer(folded(ask), given({ choice: "continue" }), 0)?.message ?? "", /retry, accept, stop/);
  });

  it("counts for every question that is open after a crash, and is not refused because of the crash", () => {
    let waiting = 0;
    for (const [name, life] of Object.entries(L.lives)) {
      for (let writes = 1; writes <= life.length; writes += 1) {
        const record = folded(life.slice(0, writes).flat());
        const due = Orphan.findDueStep(record);
        if (due?._tag !== "waiting") continue;
        waiting += 1;
        const { choices, revision } = due.question;
        for (const choice of choices) {
          assert.isUndefined(
            checkAnswer(record, given({ revision, choice }), 0),
            `${name}, write ${writes}: ${choice}`,
          );
        }
      }
    }
    assert.isAbove(waiting, 5);
  });

  it("counts after a crash although its call has no outcome in the meantime", () => {
    const open = L.incident(1, L.dispatched);
    const unknown = L.facts({ ...L.dispatched, tools: [L.call("outcome_unknown")] });
    const record = folded([
      L.begun(),
      L.attempt(1),
      L.raised(1, L.dispatched),
      L.opened(open),
      L.asked(open),
      L.raised(1, unknown),
    ]);
    assert.strictEqual(Orphan.findDueStep(record)?._tag, "waiting");
    assert.isUndefined(checkAnswer(record, given({ choice: "it_ran" }), 0));
  });
});

describe("A recorder", () => {
  it.effect("accepts one of many simultaneous answers", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* recorder.write(L.runId, ask);
      const choices: ReadonlyArray<Choice> = ["retry", "accept", "stop", "retry"];
      const told = yield* Effect.forEach(choices, (choice) => Effect.exit(recorder.answer(given({ choice }))), {
        concurrency: "unbounded",
      });
      assert.strictEqual(told.filter(({ _tag }) => _tag === "Success").length, 1);
    }).pipe(Effect.provide(RunRecorder.layerMemory())),
  );
});
