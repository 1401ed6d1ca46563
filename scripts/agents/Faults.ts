/**
 * Holds the faults that agents are run against: one on the first request of a turn, one on every request, or a response that
 * is healthy and slow.
 *
 * The answer is a text or a call of the agent's own shell tool. A call's command leaves a mark in the agent's working
 * directory when it begins and another when it ends, so that a command that was cut and ran all the same is seen.
 */
import { Answers, type FaultScript } from "../../src/testing/index.ts";
import { type Agent, asideScript } from "./Agent.ts";
import { continuedAnswers, continuedFaults } from "./Continued.ts";

type Input = FaultScript.FaultScriptInput;
export type Answer = NonNullable<Input["answers"]>[number];
export type Content = NonNullable<Answer["content"]>;

/**
 * How often a turn meets its fault: `once` on the first request, `always` on every request; `held` has no fault, but a response
 * that takes longer than the agent would wait for one that says nothing; `away` has a provider that cannot be reached for a while,
 * or at all; `continue` breaks shown text once before a provider that goes on with it, behind a gateway that asks it to.
 */
export const measures = ["once", "always", "held", "away", "continue"] as const;
export type Measure = (typeof measures)[number];

/** A column of a table. */
export interface Fault {
  readonly title: string;
  readonly measure: Measure;
  /** The answer is a call: it has to run once, whole. */
  readonly calls: boolean;
  /** What the provider answers to the first request; where the fault never stops, to each one by its number. */
  readonly broken: (agent: Agent, answer: number) => Answer;
  /** When the provider goes away; `dead`: it is gone before the turn, for good, and another one is there. */
  readonly away?: "before" | "at_break" | "dead";
}

/** How long a provider is away, in milliseconds. */
export const awayMs = 20_000;

/** The file of marks in an agent's working directory. */
export const marksFile = "marks.txt";

/** Deltas of a text. */
const deltas = 6;

/** Deltas that are sent before a text breaks. */
const deltasBefore = 3;

/** Time between text and an error event behind it, in milliseconds. */
const apartMs = 30;

/** Answers that are numbered where the fault never stops; an agent that asks more often gets the last one again. */
const answersMax = 100;

/** How long the fault "silent" is silent, in milliseconds. */
const silentMs = 20_000;

/** Stands between the two marks, so that the middle of the arguments is between them. */
const padding = "a".repeat(120);

const text: Content = [{ text: deltas }];

/** A call whose command says from which answer it came. */
const call = ({ shell }: Agent, answer: number): Content => {
  const command = `echo begin ${answer} >> ${marksFile}; : ${padding}; echo end ${answer} >> ${marksFile}`;
  const input = { [shell.parameter]: shell.list === true ? [command] : command, ...shell.more };
  return [{ tool: shell.tool, input, unmarked: shell.strict === true }];
};

/** Breaks a text behind its third delta, wherever that is among the events of a protocol. */
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

/** The columns of the table of faults that happen once, behind two where nothing breaks. */
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

/** Which of them never stop in a turn: those that break. */
const always: ReadonlyArray<Fault> = once
  .filter(({ title }) => !title.startsWith("healthy") && !title.endsWith("silent"))
  .map((it) => ({ ...it, measure: "always" }));

/** Healthy responses that take so long, in seconds; in `live` a text is not held, a call is. */
const held = (seconds: number): ReadonlyArray<Fault> => {
  const slow = (content: (agent: Agent) => Content) => (agent: Agent) => ({
    content: content(agent),
    delay_ms: Math.floor((seconds * 1000) / Answers.render(agent.protocol, 1, { content: content(agent) }).length),
  });
  return [
    { title: `text of ${seconds} s`, measure: "held", calls: false, broken: slow(() => text) },
    { title: `call of ${seconds} s`, measure: "held", calls: true, broken: slow((agent) => call(agent, 1)) },
  ];
};

/** A provider that was well and goes away, at its moments. */
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
 * @param seconds how long a held response takes
 */
export const faultsOf = (measure: Measure, seconds: number): ReadonlyArray<Fault> =>
  ({ once, always, held: held(seconds), away, continue: continuedFaults(call) })[measure];

/** What the one request gets that tries the way to the provider before it goes away. */
const triedFirst: Answer = { status: 404 };

/**
 * What the provider answers in a turn: the fault, the call once more where it was one that broke, and then texts; where the
 * fault never stops, nothing else.
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
