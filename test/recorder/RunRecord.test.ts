import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { evidenceFirstMax, evidenceLastMax, incidentsMax } from "../../src/domain/Limits.ts";
import { canGrowInto } from "../../src/facts/Growth.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as RunRecord from "../../src/recorder/RunRecord.ts";
import { seeded } from "../Seeded.ts";
import * as E from "./Entries.ts";

const frozen = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
};

const throughJson = <A, I>(schema: Schema.Codec<A, I>, value: A): A => {
  const codec = Schema.toCodecJson(schema);
  const text = JSON.stringify(Schema.encodeSync(codec)(value));
  return Schema.decodeUnknownSync(codec)(JSON.parse(text));
};

const misfits = (record: RunRecord.RunRecord | undefined): ReadonlyArray<readonly [string, string]> =>
  everyEntry.map((entry) => {
    const next = RunRecord.apply(record, entry);
    return [entry._tag, typeof next === "string" ? next : "taken"];
  });

/** Entries of a run, in an order in which they can happen. */
const everyEntry: ReadonlyArray<RunRecord.Entry> = [
  E.begun("r"),
  E.attempt(2, "continue"),
  E.raised(1, { shown: "text" }),
  { _tag: "RunRepeats", retry_of: "run_0" },
  E.joined(1, 12),
  E.noted(5, "call", "handed_over"),
  E.opened("r", 1),
  E.marked("r", 1, "acted_on", "accept"),
  E.asked("r", 1),
  E.answered(1, "accept"),
  E.stillOpen(1),
  E.ended(),
];

describe("RunRecord.apply", () => {
  it("accepts only a start if there is no run", () =>
    assert.deepStrictEqual(
      misfits(undefined),
      everyEntry.map(({ _tag }) => [_tag, _tag === "RunStarted" ? "taken" : "unknown_run"]),
    ));

  it("accepts everything except another start while the run lives", () =>
    assert.deepStrictEqual(
      misfits(E.folded([E.begun("r")])),
      everyEntry.map(({ _tag }) => [_tag, _tag === "RunStarted" ? "run_exists" : "taken"]),
    ));

  it("accepts only late entries after the end (L7)", () =>
    assert.deepStrictEqual(misfits(E.folded([E.begun("r"), E.ended({ reason: "length" })])), [
      ["RunStarted", "run_exists"],
      ["AttemptStarted", "run_ended"],
      ["FactsRaised", "taken"],
      ["RunRepeats", "taken"],
      ["RunContinued", "taken"],
      ["EvidenceNoted", "taken"],
      ["IncidentOpened", "taken"],
      ["IncidentMarked", "taken"],
      ["QuestionAsked", "run_ended"],
      ["QuestionAnswered", "run_ended"],
      ["QuestionStillOpen", "taken"],
      ["RunEnded", "run_ended"],
    ]));

  it("lets the owner replace an end that another process assumed, and no other end (L7)", () => {
    const lost = E.ended({ state: "stopped", reason: "process_lost", assumed: true });
    const begun = [E.begun("r"), E.attempt(1), E.opened("r", 1)];
    const assumed = E.folded([...begun, lost]);
    assert.deepStrictEqual(assumed.incidents[0]?.status, "open", "an assumed end settles nothing");
    assert.isTrue(RunRecord.isIncomplete(assumed));
    assert.strictEqual(E.folded([...begun, lost, E.raised(1)]).end?.reason, "process_lost", "late facts are no end");
    const own = E.folded([
      ...begun,
      lost,
      E.marked("r", 1, "acted_on"),
      E.attempt(2, "replay"),
      E.ended({ attempts: 2 }),
    ]);
    assert.deepInclude(own.end, { state: "completed", attempts: 2 });
    assert.isFalse(RunRecord.isIncomplete(own));
    assert.strictEqual(RunRecord.apply(own, lost), "run_ended");
    assert.strictEqual(RunRecord.apply(own, E.attempt(3)), "run_ended");
  });

  it("keeps the first run that it was recorded to repeat", () => {
    const repeats = (retry_of: string): RunRecord.Entry => ({ _tag: "RunRepeats", retry_of });
    const record = E.folded([E.begun("r"), repeats("run_0"), repeats("run_1")]);
    assert.strictEqual(record.retry_of, "run_0");
  });

  it("applies an entry once, because a write of unknown outcome is repeated", () => {
    const start = E.begun("r");
    if (start._tag !== "RunStarted") throw new Error("the life begins with another entry");
    const begun = { ...start, started_by: "this process" };
    const life = [begun, ...E.life("r").slice(1)].filter(({ _tag }) => _tag !== "EvidenceNoted");
    for (let many = 1; many <= life.length; many += 1) {
      const once = E.folded(life.slice(0, many));
      for (let from = 0; from < many; from += 1) {
        assert.deepStrictEqual(
          E.folded([...life.slice(0, many), ...life.slice(from, many)]),
          once,
          `${from} to ${many}`,
        );
      }
    }
    assert.strictEqual(RunRecord.apply(E.folded(life), { ...begun, started_by: "another" }), "run_exists");
    assert.strictEqual(RunRecord.apply(E.folded([E.begun("r")]), E.begun("r")), "run_exists");
  });

  it("is pure: it changes neither the record nor the entry, and returns the same result again", () => {
    let record: RunRecord.RunRecord | undefined;
    for (const entry of [...E.life("r"), E.marked("r", 2, "recovered")].map(frozen)) {
      const next = RunRecord.apply(record, entry);
      assert.deepStrictEqual(RunRecord.apply(record, entry), next);
      assert.notTypeOf(next, "string", entry._tag);
      if (typeof next !== "string") record = frozen(next);
    }
  });

  it("has the state of the run after every entry", () => {
    const states = E.life("r").map((_, index) => E.folded(E.life("r").slice(0, index + 1)).state);
    const live = (count: number) => Array.from({ length: count }, () => "live");
    assert.deepStrictEqual(states, [...live(6), "asking", ...live(5), "ended", "ended", "ended", "ended"]);
  });

  it("marks one incident and keeps its earlier answer", () => {
    const record = E.folded([
      E.begun("r"),
      E.opened("r", 1),
      E.opened("r", 2),
      E.marked("r", 1, "acted_on", "retry"),
      E.marked("r", 1, "recovered"),
    ]);
    assert.deepStrictEqual(
      record.incidents.map(({ status, answer }) => [status, answer]),
      [
        ["recovered", "retry"],
        ["open", undefined],
      ],
    );
  });

  it("raises no facts of an unknown attempt", () => {
    const record = E.folded([E.begun("r"), E.attempt(1)]);
    assert.deepStrictEqual(RunRecord.apply(record, E.raised(9, { shown: "text" })), record);
  });

  it("accepts entries that depend on an open question until it is answered, and the dependency itself changes nothing", () => {
    const asking = E.folded([E.begun("r"), E.asked("r", 1)]);
    assert.strictEqual(RunRecord.apply(asking, E.stillOpen(1)), asking);
    const answered = E.folded([E.begun("r"), E.asked("r", 1), E.answered(1, "retry"), E.asked("r", 2)]);
    assert.strictEqual(RunRecord.applyAll(answered, [E.stillOpen(2), E.noted(1), E.stillOpen(1)]), "answered");
    assert.strictEqual(RunRecord.apply(answered, E.stillOpen(2)), answered);
  });

  it("an answer belongs to the newest open question", () => {
    const record = E.folded([
      E.begun("r"),
      E.asked("r", 1),
      E.answered(1, "retry"),
      E.asked("r", 2),
      E.answered(1, "stop"),
    ]);
    assert.strictEqual(record.state, "asking");
  });
});

describe("RunRecord.apply over random histories", () => {
  const seed = 863;
  const random = seeded(seed);
  const pick = (max: number) => 1 + Math.floor(random() * max);

  /** The next entry. Attempts are numbered as they start, like in the runtime. */
  const step = (attempts: number): RunRecord.Entry => {
    const roll = random();
    if (roll < 0.15) return E.attempt(attempts + 1, "replay");
    if (roll < 0.35)
      return E.raised(pick(attempts + 1), { text_through: pick(50), shown: random() < 0.5 ? "text" : "nothing" });
    if (roll < 0.6) return E.noted(pick(1_000), random() < 0.3 ? "terminal_candidate" : "shown");
    if (roll < 0.75) return E.opened("r", pick(200));
    if (roll < 0.85) return E.marked("r", pick(200), random() < 0.5 ? "acted_on" : "recovered");
    if (roll < 0.92) return E.asked("r", pick(50));
    if (roll < 0.995) return E.answered(pick(50), "retry");
    return E.ended({ state: "stopped", incident: E.incidentId("r", pick(200)) });
  };

  const grown = (before: RunRecord.RunRecord, after: RunRecord.RunRecord, where: string): void => {
    for (const attempt of before.attempts) {
      const same = after.attempts.find((it) => it.attempt === attempt.attempt);
      if (same !== undefined) assert.isTrue(canGrowInto(attempt.facts, same.facts), where);
    }
    if (before.state === "ended") assert.deepStrictEqual([after.state, after.end], ["ended", before.end], where);
    assert.isAtLeast(after.evidence.omitted, before.evidence.omitted, where);
    assert.isAtLeast(after.incidents_omitted, before.incidents_omitted, where);
  };

  const bounded = (record: RunRecord.RunRecord, where: string): void => {
    assert.isAtMost(record.attempts.length, RunRecord.attemptsMax, where);
    assert.isAtMost(record.evidence.first.length, evidenceFirstMax, where);
    assert.isAtMost(record.evidence.last.length, evidenceLastMax, where);
    assert.isAtMost(record.incidents.length, incidentsMax, where);
    assert.isAtMost(record.questions.length, incidentsMax, where);
    assert.strictEqual(new Set(record.incidents.map((it) => it.id)).size, record.incidents.length, where);
    const final = record.incidents.filter((it) => it.status === "final");
    for (const incident of final) assert.strictEqual(incident.id, record.end?.incident, where);
  };

  it(`facts grow (L1), there is one end (L7), everything is bounded (L11); seed ${seed}`, () => {
    for (let run = 0; run < 10; run += 1) {
      let record = E.folded([E.begun("r")]);
      for (let index = 0; index < 800; index += 1) {
        const entry = step(record.attempts_omitted + record.attempts.length);
        const where = `seed ${seed}, run ${run}, entry ${index} ${entry._tag}`;
        const next = RunRecord.apply(record, entry);
        if (typeof next === "string") {
          assert.strictEqual(next, "run_ended", where);
          continue;
        }
        grown(record, next, where);
        bounded(next, where);
        record = next;
      }
    }
  });
});

describe("RunRecord as JSON", () => {
  it("decodes every record to the record that was encoded", () => {
    for (const [index] of E.life("r").entries()) {
      const record = E.folded(E.life("r").slice(0, index + 1));
      assert.deepStrictEqual(throughJson(RunRecord.RunRecord, record), record);
    }
  });

  it("decodes every entry to the entry that was encoded", () => {
    for (const entry of everyEntry) assert.deepStrictEqual(throughJson(RunRecord.Entry, entry), entry);
  });

  it("folds the same record from entries that went through JSON", () =>
    assert.deepStrictEqual(
      E.folded(E.life("r").map((entry) => throughJson(RunRecord.Entry, entry))),
      E.folded(E.life("r")),
    ));

  it("contains incidents whose facts lead to the same decision again (L9)", () => {
    const [incident] = throughJson(RunRecord.RunRecord, E.folded(E.life("r"))).incidents;
    assert.isDefined(incident);
    if (incident !== undefined) assert.deepStrictEqual(RecoveryPolicy.decide(incident), incident.decision);
  });
});
