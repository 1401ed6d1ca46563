/**
 * Holds the faults that agents are run against, one on the first request of a turn.
 *
 * The answer is a text or a call of the agent's own shell tool. A call's command leaves a mark in the agent's working
 * directory when it begins and another when it ends, so that a command that was cut and ran all the same is seen.
 */
import { Answers, type FaultScript } from "../../src/testing/index.ts";
import { type Agent, asideScript } from "./Agent.ts";

type Input = FaultScript.FaultScriptInput;
type Answer = NonNullable<Input["answers"]>[number];
type Content = NonNullable<Answer["content"]>;

/** A column of the table. */
export interface Fault {
  readonly title: string;
  /** The answer is a call: it has to run once, whole. */
  readonly calls: boolean;
  /** What the provider answers to the first request. */
  readonly first: (agent: Agent) => Answer;
}

/** The file of marks in an agent's working directory. */
export const marksFile = "marks.txt";

/** Deltas of a text. */
const deltas = 6;

/** Deltas that are sent before a text breaks. */
const deltasBefore = 3;

/** Time between text and an error event behind it, in milliseconds. */
const apartMs = 30;

/** How long the fault "silent" is silent, in milliseconds. */
const silentMs = 20_000;

/** Stands between the two marks, so that the middle of the arguments is between them. */
const padding = "a".repeat(120);

const text: Content = [{ text: deltas }];

/** A call whose command says from which answer it came. */
const call = ({ shell }: Agent, answer: number): Content => [
  {
    tool: shell.tool,
    input: {
      [shell.parameter]: `echo begin ${answer} >> ${marksFile}; : ${padding}; echo end ${answer} >> ${marksFile}`,
    },
  },
];

/** Breaks a text behind its third delta, wherever that is among the events of a protocol. */
const inText =
  (kind: "rst" | "end") =>
  ({ protocol }: Agent): Answer => {
    const events = Answers.render(protocol, 1, { content: text });
    const last = events.findIndex((event) => event.serials.includes(`r1.${deltasBefore - 1}·`));
    return { content: text, break: { kind, at: "event", n: last + 1 } };
  };

const inCall =
  (kind: "rst" | "end", at: "tool_arguments" | "terminal") =>
  (agent: Agent): Answer => ({ content: call(agent, 1), break: { kind, at } });

const fault = (title: string, first: Fault["first"], calls = false): Fault => ({ title, calls, first });

/** The columns of the table, behind two where nothing breaks. */
export const faults: ReadonlyArray<Fault> = [
  fault("healthy text", () => ({ content: text })),
  fault("healthy call", (agent) => ({ content: call(agent, 1) }), true),
  fault("reset", () => ({ break: { kind: "rst", at: "before_head" } })),
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

/** What the provider answers in a turn: the fault, the call once more where it was one that broke, and then texts. */
export const scriptOf = (agent: Agent, { calls, first, title }: Fault): Input => {
  const again = calls && title !== "healthy call" ? [{ content: call(agent, 2) }] : [];
  return {
    answers: [first(agent), ...again, { content: text }],
    scripts: { [asideScript]: [{ content: [{ text: 1 }] }] },
  };
};
