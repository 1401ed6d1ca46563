/**
 * The faults that agents are tested with: on the first request of a turn or on every request, and slow but healthy responses.
 *
 * The answer is text or a call of the agent's own shell tool. The call's command writes a mark into the agent's working directory when
 * it starts and another when it ends, so that a truncated command that ran anyway is detected.
 */
import { Answers, type FaultScript } from "../../src/testing/index.ts";
import { type Agent, asideScript } from "./Agent.ts";
import { continuedAnswers, continuedFaults } from "./Continued.ts";

type Input = FaultScript.FaultScriptInput;
export type Answer = NonNullable<Input["answers"]>[number];
export type Content = NonNullable<Answer["content"]>;

/**
 * `once`: a fault on the first request. `always`: a fault on every request. `held`: no fault, but a response that takes longer than the
 * agent waits for a silent one. `away`: a provider that is unreachable for a while or for good. `continue`: shown text breaks once, and
 * the provider continues it at the request of the gateway.
 */
export const measures = ["once", "always", "held", "away", "continue"] as const;
export type Measure = (typeof measures)[number];

/** A column of a table. */
export interface Fault {
  readonly title: string;
  readonly measure: Measure;
  /** True if the answer is a call, which must run exactly once and complete. */
  readonly calls: boolean;
  /** The provider's answer to the first request, or to each request by its number if the fault never stops. */
  readonly broken: (agent: Agent, answer: number) => Answer;
  /** The moment at which the provider goes away. `dead`: it is gone for good before the turn, and there is a second provider. */
  readonly away?: "before" | "at_break" | "dead";
}

/** Duration of the provider's absence, in milliseconds. */
export const awayMs = 20_000;

/** The file of marks in an agent's working directory. */
export const marksFile = "marks.txt";

/** Number of deltas of a text. */
const deltas = 6;

/** Number of deltas before a text breaks. */
const deltasBefore = 3;

/** Delay between text and a following error event, in milliseconds. */
const apartMs = 30;

/** Number of different answers for a fault that never stops. Later requests get the last one again. */
const answersMax = 100;

/** Duration of the silence of the fault "20 s silent", in milliseconds. */
const silentMs = 20_000;

/** Separates the two marks, so that the middle of the arguments lies between them. */
const padding = "a".repeat(120);

const text: Content = [{ text: deltas }];

/** A call whose command records the number of its answer. */
const call = ({ shell }: Agent, answer: number): Content => {
  const command = `echo begin ${answer} >> ${marksFile}; : ${padding}; echo end ${answer} >> ${marksFile}`;
  const input = { [shell.parameter]: shell.list === true ? [command] : command, ...shell.more };
  return [{ tool: shell.tool, input, unmarked: shell.strict === true }];
};

/** Breaks text after its third delta, wherever the protocol's events contain it. */
const inText =
  (kind: "rst" | "end") =>
  ({ protocol }: Agent): Answer => {
    const events = Answers.render(protocol, 1, { content: text });
    const last = events.findIndex((event) => event.serials.includes(`r1.${deltasBefore - 1}·`));
    return { content: text, break: { kind, at: "event", n: last + 1 } };
  };

const resetAtOnce = { kind: "rst", at: "before_head" } as const;

const inCall =
  (kind: "rst" | "end", at: "tool_arguments" | "terminal") =>
  (agent: Agent, answer: number): Answer => ({ content: call(agent, answer), break: { kind, at } });

const fault = (title: string, broken: Fault["broken"], calls = false): Fault => ({
  title,
  measure: "once",
  calls,
  broken,
});

/** The columns of faults that happen once, preceded by two without a fault. */
const once: ReadonlyArray<Fault> = [
  fault("healthy text", () => ({ content: text })),
  fault("healthy call", (agent) => ({ content: call(agent, 1) }), true),
  fault("reset", () => ({ break: resetAtOnce })),
  fault("text cut", inText("rst")),
  fault("text clean end", inText("end")),
  fault("args cut", inCall("rst", "tool_arguments"), true),
  fault("args clean end", inCall("end", "tool_arguments"), true),
  fault("call complete, then cut", inCall("rst", "terminal"), true),
  fault("20 s silent", () => ({ content: text, first_delay_ms: silentMs })),
  fault("429", () => ({ status: 429, headers: { "retry-after": "1" } })),
  fault("in-stream overload", () => ({
    content: [{ text: deltasBefore }, { error: "overloaded" }],
    delay_ms: apartMs,
  })),
  fault("5xx", () => ({ status: 500 })),
];

/** The faults that can also happen at every request: those that break. */
const always: ReadonlyArray<Fault> = once
  .filter(({ title }) => !title.startsWith("healthy") && !title.endsWith("silent"))
  .map((it) => ({ ...it, measure: "always" }));

/** Healthy responses of a given duration in seconds. In `live`, a call is held but text is not. */
const makeHeldFaults = (seconds: number): ReadonlyArray<Fault> => {
  const slow = (content: (agent: Agent) => Content) => (agent: Agent) => ({
    content: content(agent),
    delay_ms: Math.floor((seconds * 1000) / Answers.render(agent.protocol, 1, { content: content(agent) }).length),
  });
  return [
    { title: `text of ${seconds} s`, measure: "held", calls: false, broken: slow(() => text) },
    { title: `call of ${seconds} s`, measure: "held", calls: true, broken: slow((agent) => call(agent, 1)) },
  ];
};

/** A provider that works at first and goes away at a certain moment. */
const away: ReadonlyArray<Fault> = [
  { title: "away before", measure: "away", calls: false, broken: () => ({ content: text }), away: "before" },
  { title: "away, reset", measure: "away", calls: false, broken: () => ({ break: resetAtOnce }), away: "at_break" },
  { title: "away in text", measure: "away", calls: false, broken: inText("rst"), away: "at_break" },
  { title: "away in args", measure: "away", calls: true, broken: inCall("rst", "tool_arguments"), away: "at_break" },
  { title: "primary dead", measure: "away", calls: false, broken: () => ({ content: text }), away: "dead" },
  {
    title: "primary dead, call",
    measure: "away",
    calls: true,
    broken: (agent) => ({ content: call(agent, 1) }),
    away: "dead",
  },
];

/**
 * The columns of a measure's table.
 *
 * @param seconds duration of a held response
 */
export const faultsOf = (measure: Measure, seconds: number): ReadonlyArray<Fault> =>
  ({ once, always, held: makeHeldFaults(seconds), away, continue: continuedFaults(call) })[measure];

/** The answer to the request that tests the path before the provider goes away. */
const triedFirst: Answer = { status: 404 };

/**
 * The provider's answers in a turn: the fault, the call once more if it broke, and then text. If the fault never stops, there are no
 * others.
 */
export const scriptOf = (agent: Agent, { away, broken, calls, measure, title }: Fault): Input => {
  const breaks = measure === "once" ? title !== "healthy call" : broken(agent, 1).break !== undefined;
  const again = calls && measure !== "always" && breaks ? [{ content: call(agent, 2) }] : [];
  return {
    answers:
      measure === "continue"
        ? continuedAnswers(broken(agent, 1))
        : measure === "always"
          ? Array.from({ length: answersMax }, (_, at) => broken(agent, at + 1))
          : [
              ...(away === "before" || away === "dead" ? [triedFirst] : []),
              broken(agent, 1),
              ...again,
              { content: text },
            ],
    scripts: { [asideScript]: [{ content: [{ text: 1 }] }] },
  };
};
