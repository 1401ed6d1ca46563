/**
 * Shows the judge of histories a history that is right, and for each of its rules one that only this rule rejects.
 */
import { assert, describe, it } from "@effect/vitest";
import type { Final, Operation } from "../../scripts/histories/History.ts";
import { problems, type Rule } from "../../scripts/histories/HistoryJudge.ts";

let at = 0;

/** An operation behind all that stand before it, unless it says when it began and was over. */
const did = (actor: string, kind: Operation["kind"], id: number, more: Partial<Operation> = {}): Operation => {
  at += 10;
  return { actor, kind, id, run: "r", from: at, to: at + 5, outcome: "ok", ...more };
};

const final = (notes: ReadonlyArray<number>, more: Partial<Final> = {}): Final => ({
  run: "r",
  notes,
  questions: [],
  ...more,
});

const asked = { questions: [{ id: 3, revision: 1, answer: "retry" }] };

interface History {
  readonly operations: ReadonlyArray<Operation>;
  readonly finals: ReadonlyArray<Final>;
}

const good: Readonly<Record<string, History>> = {
  "of one owner, a question, its answer and an end": {
    operations: [
      did("a", "start", 1),
      did("a", "note", 2),
      did("a", "ask", 3, { revision: 1 }),
      did("b", "answer", 4, { revision: 1, choice: "retry" }),
      did("c", "answer", 5, { revision: 1, choice: "stop", outcome: "refused" }),
      did("a", "end", 6),
      did("b", "claim", 7, { outcome: "refused", reason: "run_ended" }),
    ],
    finals: [final([2], { ...asked, end: 6 })],
  },
  "of a run that changes hands, and whose old owner is refused": {
    operations: [
      did("a", "start", 1),
      did("a", "note", 2),
      did("b", "claim", 3, { saw: [2] }),
      did("a", "note", 4, { outcome: "refused", reason: "fenced" }),
      did("b", "note", 5),
      did("b", "park", 6),
      did("a", "claim", 7, { saw: [2, 5] }),
      did("a", "note", 8),
    ],
    finals: [final([2, 5, 8])],
  },
  "in which what nobody knows of is there": {
    operations: [
      did("a", "start", 1),
      did("a", "note", 2, { outcome: "unknown", to: undefined }),
      did("b", "claim", 3, { outcome: "unknown", to: undefined }),
      did("b", "note", 4),
      did("b", "end", 5, { outcome: "unknown", to: undefined }),
    ],
    finals: [final([2, 4], { end: 5 })],
  },
  "in which what nobody knows of is not there": {
    operations: [
      did("a", "start", 1, { outcome: "unknown", to: undefined }),
      did("a", "note", 2, { outcome: "unknown", to: undefined }),
    ],
    finals: [],
  },
  "whose claim meets the last note of the old owner": {
    operations: [
      did("a", "start", 1),
      did("a", "note", 2, { from: 1_000, to: 2_000 }),
      did("b", "claim", 3, { from: 900, to: 2_100, saw: [2] }),
    ],
    finals: [final([2])],
  },
  "whose owner gave the run back while its last note was under way, which came when nobody drove the run": {
    operations: [
      did("a", "start", 1),
      did("a", "park", 2, { from: 1_000, to: 9_000 }),
      did("a", "note", 3, { from: 1_100, to: 9_100 }),
      did("b", "claim", 4, { from: 2_000, to: 2_100, saw: [] }),
      did("b", "note", 5, { from: 3_000, to: 3_100 }),
      did("b", "end", 6, { from: 4_000, to: 4_100 }),
    ],
    finals: [final([5, 3], { end: 6 })],
  },
  "whose question came while another process claimed the run, which has found it": {
    operations: [
      did("a", "start", 1),
      did("a", "ask", 2, { revision: 1, from: 1_000, to: 9_000 }),
      did("b", "claim", 3, { from: 2_000, to: 9_100, saw: [], asked: [2] }),
      did("b", "end", 4, { from: 10_000, to: 10_100 }),
    ],
    finals: [final([], { questions: [{ id: 2, revision: 1 }], end: 4 })],
  },
  "whose old owner, which did not know yet that it had given the run back, ended it when nobody drove it": {
    operations: [
      did("a", "start", 1),
      did("a", "park", 2, { from: 1_000, to: 9_000 }),
      did("b", "claim", 3, { from: 2_000, to: 2_100, saw: [], asked: [] }),
      did("b", "release", 4, { from: 3_000, to: 3_100, outcome: "unknown" }),
      did("a", "end", 5, { from: 4_000, to: 4_100 }),
    ],
    finals: [final([], { end: 5 })],
  },
  "whose old owner has taken it again before it asks, parks and ends it": {
    operations: [
      did("a", "start", 1),
      did("b", "claim", 2, { saw: [], asked: [] }),
      did("a", "claim", 3, { outcome: "unknown", to: undefined }),
      did("a", "ask", 4, { revision: 1 }),
      did("a", "park", 5),
      did("a", "claim", 6, { saw: [], asked: [4] }),
      did("a", "end", 7),
    ],
    finals: [final([], { questions: [{ id: 4, revision: 1 }], end: 7 })],
  },
};

const bad: Readonly<Record<string, History & { readonly rule: Rule }>> = {
  "an acknowledged note is missing": {
    rule: "missing",
    operations: [did("a", "start", 1), did("a", "note", 2)],
    finals: [final([])],
  },
  "an acknowledged question is missing": {
    rule: "missing",
    operations: [did("a", "start", 1), did("a", "ask", 2, { revision: 1 })],
    finals: [final([])],
  },
  "an acknowledged run is missing": { rule: "missing", operations: [did("a", "start", 1)], finals: [] },
  "a refused note is there": {
    rule: "refused",
    operations: [did("a", "start", 1), did("a", "note", 2, { outcome: "refused" })],
    finals: [final([2])],
  },
  "a refused end is there": {
    rule: "refused",
    operations: [did("a", "start", 1), did("a", "end", 2, { outcome: "refused" })],
    finals: [final([], { end: 2 })],
  },
  "a run is begun twice": {
    rule: "started",
    operations: [did("a", "start", 1), did("b", "start", 2)],
    finals: [final([])],
  },
  "a question takes two answers": {
    rule: "answers",
    operations: [
      did("a", "start", 1),
      did("a", "ask", 3, { revision: 1 }),
      did("b", "answer", 4, { revision: 1, choice: "retry" }),
      did("c", "answer", 5, { revision: 1, choice: "retry" }),
    ],
    finals: [final([], asked)],
  },
  "an acknowledged answer is another one": {
    rule: "answers",
    operations: [
      did("a", "start", 1),
      did("a", "ask", 3, { revision: 1 }),
      did("b", "answer", 4, { revision: 1, choice: "stop" }),
    ],
    finals: [final([], asked)],
  },
  "an answer is there that was refused": {
    rule: "answers",
    operations: [
      did("a", "start", 1),
      did("a", "ask", 3, { revision: 1 }),
      did("b", "answer", 4, { revision: 1, choice: "retry", outcome: "refused" }),
    ],
    finals: [final([], asked)],
  },
  "a run ends twice": {
    rule: "end",
    operations: [did("a", "start", 1), did("a", "end", 2), did("a", "end", 3)],
    finals: [final([], { end: 3 })],
  },
  "a run has lost its end": {
    rule: "end",
    operations: [did("a", "start", 1), did("a", "end", 2)],
    finals: [final([])],
  },
  "a run is taken up behind its end": {
    rule: "end",
    operations: [did("a", "start", 1), did("a", "end", 2), did("b", "claim", 3, { saw: [] })],
    finals: [final([], { end: 2 })],
  },
  "a claim has not found what was acknowledged before": {
    rule: "seen",
    operations: [
      did("a", "start", 1),
      did("a", "note", 2),
      did("b", "claim", 3, { saw: [], outcome: "ok" }),
      did("a", "claim", 4, { saw: [] }),
    ],
    finals: [final([2])],
  },
  "a claim has not found a question that was acknowledged before": {
    rule: "seen",
    operations: [
      did("a", "start", 1),
      did("a", "ask", 2, { revision: 1 }),
      did("a", "park", 3),
      did("b", "claim", 4, { saw: [], asked: [] }),
    ],
    finals: [final([], { questions: [{ id: 2, revision: 1 }] })],
  },
  "a read has found another order": {
    rule: "seen",
    operations: [
      did("a", "start", 1),
      did("a", "note", 2, { from: 100_000, to: 100_010 }),
      did("a", "note", 3, { from: 100_000, to: 100_010 }),
      did("b", "read", 4, { saw: [3] }),
    ].map((it) => (it.kind === "read" ? { ...it, from: 100_000, to: 100_020 } : it)),
    finals: [final([2, 3])],
  },
  "a read has found a note that is gone": {
    rule: "seen",
    operations: [
      did("a", "start", 1),
      did("a", "note", 2, { outcome: "unknown", to: undefined }),
      did("b", "read", 3, { saw: [2] }),
    ],
    finals: [final([])],
  },
  "an old owner writes behind a claim": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "claim", 2, { saw: [] }), did("a", "note", 3)],
    finals: [final([3])],
  },
  "an old owner that does not know what came of it has written behind a claim": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("b", "claim", 2, { saw: [] }),
      did("b", "note", 3),
      did("a", "note", 4, { outcome: "unknown", to: undefined }),
    ],
    finals: [final([3, 4])],
  },
  "a note that was under way when its owner gave the run back comes while another one drives it": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("a", "park", 2, { from: 1_000, to: 9_000 }),
      did("a", "note", 3, { from: 1_100, to: 9_100 }),
      did("b", "claim", 4, { from: 2_000, to: 2_100, saw: [] }),
      did("b", "note", 5, { from: 3_000, to: 3_100 }),
    ],
    finals: [final([5, 3])],
  },
  "a note that began when its owner had given the run back": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("a", "release", 2, { outcome: "unknown" }),
      did("b", "claim", 4, { saw: [] }),
      did("b", "end", 5),
      did("a", "note", 6),
    ],
    finals: [final([6], { end: 5 })],
  },
  "of two claims that found the same the first one writes": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("b", "claim", 2, { saw: [] }),
      did("c", "claim", 3, { saw: [] }),
      did("b", "note", 4),
    ],
    finals: [final([4])],
  },
  "a process writes a run that another one has begun, and that it never claimed": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "note", 2)],
    finals: [final([2])],
  },
  "an old owner asks behind a claim": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "claim", 2, { saw: [] }), did("a", "ask", 3, { revision: 1 })],
    finals: [final([], { questions: [{ id: 3, revision: 1 }] })],
  },
  "an old owner that does not know what came of it has asked behind a claim": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("b", "claim", 2, { saw: [] }),
      did("a", "ask", 3, { revision: 1, outcome: "unknown", to: undefined }),
    ],
    finals: [final([], { questions: [{ id: 3, revision: 1 }] })],
  },
  "an old owner's question was under way when the run was claimed, and the claim has not found it": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("a", "ask", 2, { revision: 1, from: 100_000, to: 900_000 }),
      did("b", "claim", 3, { from: 200_000, to: 200_100, saw: [], asked: [] }),
    ],
    finals: [final([], { questions: [{ id: 2, revision: 1 }] })],
  },
  "an old owner parks behind a claim": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "claim", 2, { saw: [] }), did("a", "park", 3)],
    finals: [final([])],
  },
  "an old owner ends a run behind a claim": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "claim", 2, { saw: [] }), did("a", "end", 3)],
    finals: [final([], { end: 3 })],
  },
  "an old owner's end was under way when the run was claimed, and came behind that": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("a", "end", 2, { from: 100_000, to: undefined, outcome: "unknown" }),
      did("b", "claim", 3, { from: 200_000, to: 200_100, saw: [] }),
    ],
    finals: [final([], { end: 2 })],
  },
  "an old owner that has claimed before ends a run behind the next claim": {
    rule: "owner",
    operations: [
      did("a", "start", 1),
      did("b", "claim", 2, { saw: [] }),
      did("c", "claim", 3, { saw: [] }),
      did("b", "end", 4),
    ],
    finals: [final([], { end: 4 })],
  },
  "a process ends a run that another one has begun, and that it never claimed": {
    rule: "owner",
    operations: [did("a", "start", 1), did("b", "end", 2)],
    finals: [final([], { end: 2 })],
  },
  "who has parked a run writes it": {
    rule: "parked",
    operations: [did("a", "start", 1), did("a", "park", 2), did("a", "note", 3)],
    finals: [final([3])],
  },
};

const rulesOf = (history: History): ReadonlyArray<Rule> => [...new Set(problems(history).map(({ rule }) => rule))];

describe("The judge of histories takes one", () => {
  for (const [name, history] of Object.entries(good)) it(name, () => assert.deepStrictEqual(problems(history), []));
});

describe("The judge of histories rejects one", () => {
  for (const [name, { rule, ...history }] of Object.entries(bad)) {
    it(`in which ${name}, by "${rule}" alone`, () => assert.deepStrictEqual(rulesOf(history), [rule]));
  }

  it("by each of its rules", () => {
    const rules = [...new Set(Object.values(bad).map(({ rule }) => rule))].sort();
    assert.deepStrictEqual(rules, ["answers", "end", "missing", "owner", "parked", "refused", "seen", "started"]);
  });
});
