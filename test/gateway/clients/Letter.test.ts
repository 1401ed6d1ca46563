/**
 * The judge of `npm run agents`: each letter stands for one result only.
 */
import { assert, describe, it } from "@effect/vitest";
import type { Fault } from "../../../scripts/agents/Faults.ts";
import { findWorst, judge, type Letter, type Seen } from "../../../scripts/agents/Letter.ts";
import type { RequestLog } from "../../../src/testing/index.ts";

const fault = (calls: boolean, measure: Fault["measure"] = "once"): Fault => ({
  ...{ title: "a fault", measure, calls },
  broken: () => ({}),
});

const row = (number: number, more: Partial<RequestLog>): RequestLog => ({
  ...{ number, connection: number, reused: false, script: "", method: "POST", path: "/v1/chat/completions" },
  ...{ header_names: [], bytes_received: 0, bytes_sent: 0, sent_hash: "", started_ms: 0, protocol: "openai-chat" },
  ...{ body_bytes: 1_000, body_hash: "same", text: [], reasoning: [], calls: [], terminal: true, outcome: "complete" },
  ...more,
});

const cut = (number: number, more: Partial<RequestLog>) => row(number, { terminal: false, outcome: "broken", ...more });
const texts = (request: number, count: number) => Array.from({ length: count }, (_, delta) => `r${request}.${delta}·`);
const call = (request: number) => ({
  serial: `r${request}.t1`,
  name: "bash",
  executor: "runtime" as const,
  input: "{}",
});

/** The request after a command has run: the model gets its output, and says something. */
const told = row(3, { body_hash: "told", body_bytes: 2_000, text: texts(3, 2) });
const third = texts(3, 2).join("");

const textCut = [cut(1, { text: texts(1, 3) }), row(2, { text: texts(2, 6) })];
const callCut = [cut(1, { calls: [call(1)] }), row(2, { calls: [call(2)] }), told];
const ran = (...answers: ReadonlyArray<number>) => answers.flatMap((answer) => [`begin ${answer}`, `end ${answer}`]);

const nothing: Seen = {
  ...{ text: "", error: undefined, code: 0, stdout: "", stderr: "", gateway: false, marks: [], log: [] },
};

const cases: ReadonlyArray<readonly [Letter, string, boolean, Partial<Seen>]> = [
  ["R", "the second answer alone", false, { text: texts(2, 6).join(""), log: textCut }],
  ["D", "both answers", false, { text: [...texts(1, 3), ...texts(2, 6)].join(""), log: textCut }],
  ["D", "the same words twice", false, { text: texts(2, 6).join("").repeat(2), log: textCut }],
  ["T", "half an answer as a whole one", false, { text: texts(1, 3).join(""), log: textCut.slice(0, 1) }],
  ["T", "nothing of an answer", false, { text: "", log: textCut }],
  ["E", "a bad exit", false, { code: 1, text: texts(1, 3).join(""), log: textCut.slice(0, 1) }],
  ["E", "an error with exit 0", false, { error: "no", log: textCut.slice(0, 1) }],
  ["H", "no end", false, { code: undefined, log: textCut.slice(0, 1) }],
  ["R", "the second call alone", true, { text: third, marks: ran(2), log: callCut }],
  ["X", "both calls of one request", true, { text: third, marks: ran(1, 2), log: callCut }],
  ["X", "one call twice", true, { text: third, marks: ran(2, 2), log: callCut }],
  ["XT", "a command that never ended", true, { text: third, marks: ["begin 1", ...ran(2)], log: callCut }],
  ["T", "no call at all", true, { text: third, marks: [], log: callCut }],
  [
    "R",
    "a second call behind the result of the first",
    true,
    {
      text: third,
      marks: ran(1, 2),
      log: callCut.map((it, at) => (at === 1 ? { ...it, body_hash: "b", body_bytes: 1_900 } : it)),
    },
  ],
  [
    "M",
    "a call that was cut and told to the model",
    true,
    {
      text: third,
      marks: ran(2),
      log: [cut(1, {}), row(2, { calls: [call(2)], body_hash: "b", body_bytes: 1_900 }), told],
    },
  ],
];

describe("the judge of the agents' turns", () => {
  for (const [letter, what, calls, seen] of cases) {
    it(`${letter}: ${what}`, () => {
      const whole: Seen = { ...nothing, ...seen };
      const cell = judge(fault(calls), whole);
      assert.strictEqual(cell.letter, letter);
      assert.strictEqual(cell.requests, whole.log.length);
    });
  }

  const told = "400 stream-recovery gateway: the model provider did not answer. There are no further attempts.";
  const endless: ReadonlyArray<readonly [Letter, string, Partial<Seen>]> = [
    ["E", "the gateway's reason is an error of the agent", { code: 1, error: told, gateway: true }],
    ["E", "the gateway's reason is printed", { code: 1, stderr: told, gateway: true }],
    ["E", "the provider's reason passed the gateway", { code: 1, stdout: "429 Rate limit reached", gateway: true }],
    ["Q", "the gateway's reason is not on the screen", { code: 1, error: "Something went wrong.", gateway: true }],
    ["E", "a provider without words is asked directly", { code: 1, error: "fetch failed" }],
    ["Q", "an agent that is asked directly says nothing", { code: 1 }],
    ["H", "an agent goes on for ever", { code: undefined }],
    ["T", "half an answer passes for a whole one", { text: texts(1, 3).join(""), gateway: true }],
  ];
  for (const [letter, what, seen] of endless) {
    it(`an endless fault, ${letter}: ${what}`, () => {
      const log = [cut(1, { text: texts(1, 3) }), cut(2, { text: texts(2, 3) })];
      const cell = judge(fault(false, "always"), { ...nothing, log, ...seen });
      assert.strictEqual(cell.letter, letter);
      assert.strictEqual(cell.requests, 2);
    });
  }

  it("the call of each answer runs once if the fault never ends and the model asks again", () => {
    const log = [1, 2, 3].map((n) => cut(n, { calls: [call(n)], body_hash: `${n}`, body_bytes: 1_000 + 900 * n }));
    assert.notStrictEqual(judge(fault(true, "always"), { ...nothing, marks: ran(1, 2, 3), log }).letter, "X");
    const repeated = log.map((it, at) => (at === 2 ? { ...it, body_hash: "2", body_bytes: 2_800 } : it));
    assert.strictEqual(judge(fault(true, "always"), { ...nothing, marks: ran(1, 2, 3), log: repeated }).letter, "X");
  });

  it("of several plays the worst counts, and of equal ones the most expensive", () => {
    const cell = (letter: Letter, requests = 1) => ({ letter, requests, note: "" });
    assert.strictEqual(findWorst([cell("R"), cell("X"), cell("E")]).letter, "X");
    assert.strictEqual(findWorst([cell("D"), cell("R")]).letter, "D");
    assert.strictEqual(findWorst([cell("E", 2), cell("E", 4), cell("E", 3)]).requests, 4);
  });
});
