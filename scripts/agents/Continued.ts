/**
 * Holds the breaks in shown text that a gateway with `--continue-text auto` is run against, before a provider that goes on with its
 * own answer, and says how each one was taken.
 */
import { Answers } from "../../src/testing/index.ts";
import type { Agent } from "./Agent.ts";
import type { Answer, Content, Fault } from "./Faults.ts";

/** Text in sentences; some deltas end inside a word. */
const prose: Content[number] = {
  text: 12,
  words: [
    "Every build reads one file of settings first. ",
    "It na",
    "mes the targets, ",
    "and each of them ",
    "has a list of steps. ",
    "A step ru",
    "ns once, and its ",
    "result is kept. ",
    "Nothing is asked ",
    "of the network, ",
    "so that a bui",
    "ld gives the same result twice.",
  ],
};

/** A text with a block of code in its middle. */
const code: Content[number] = {
  text: 12,
  words: [
    "Here is the function:\n\n```ts\n",
    "const sum = (a: number, ",
    "b: number): number => {\n",
    "  const to",
    "tal = a + b;\n",
    "  return total;\n",
    "};\n```\n\n",
    "It adds ",
    "both numbers, ",
    "and it keeps ",
    "nothing ",
    "behind.",
  ],
};

/** Deltas of each of the texts. */
export const deltasOf = 12;

/** A break behind so many deltas of the text. */
const behind =
  (kind: "rst" | "end", deltas: number, content: (agent: Agent) => Content) =>
  (agent: Agent): Answer => {
    const events = Answers.render(agent.protocol, 1, { content: content(agent) });
    const last = events.findIndex(({ serials }) => serials.includes(`r1.${deltas - 1}·`));
    return { content: content(agent), break: { kind, at: "event", n: last + 1 } };
  };

/**
 * The breaks: in a sentence, behind one, in code, in front of a call.
 *
 * @param call the agent's own shell call of an answer, by its number
 */
export const continuedFaults = (call: (agent: Agent, answer: number) => Content): ReadonlyArray<Fault> => {
  const text = () => [prose];
  const withCall = (agent: Agent) => [prose, ...call(agent, 1)];
  const fault = (title: string, broken: Fault["broken"], calls = false): Fault => ({
    title,
    measure: "continue",
    calls,
    broken,
  });
  return [
    fault("first sentence", behind("rst", 1, text)),
    fault("half a word", behind("rst", 6, text)),
    fault("clean end", behind("end", 8, text)),
    fault("last sentence", behind("rst", 11, text)),
    fault(
      "in code",
      behind("rst", 4, () => [code]),
    ),
    fault("text, then a call", behind("rst", 10, withCall), true),
    fault(
      "args behind text",
      (agent) => ({ content: withCall(agent), break: { kind: "rst", at: "tool_arguments" } }),
      true,
    ),
  ];
};

/** What the provider answers: the text that breaks, its continuation where it is asked for one, and then a last word. */
export const continuedAnswers = (broken: Answer): ReadonlyArray<Answer> => [
  broken,
  { ...(broken.content === undefined ? {} : { content: broken.content }), goes_on: {} },
  { content: [{ text: 2 }] },
];

/**
 * What is wrong with the text that a user sees: a delta of it twice or in another order, or the end of an answer missing.
 */
export const shownWrongly = (text: string): "twice" | "short" | undefined => {
  const answers = Map.groupBy([...text.matchAll(/r(\d+)\.(\d+)·/g)], ([, request]) => request);
  for (const deltas of answers.values()) if (deltas.some(([, , delta], at) => Number(delta) !== at)) return "twice";
  const longest = Math.max(0, ...[...answers.values()].map(({ length }) => length));
  return longest < deltasOf ? "short" : undefined;
};

const row = /^stream_recovery_seams(?:_total)?\{([^}]*)\} (\d+)/gm;

/**
 * How shown text was gone on with, by the gateway's own metrics: how it was proven, or why it was not.
 *
 * @param metrics the text of `/metrics`
 * @returns such as `joined: anchor`; undefined where there was no seam to speak of
 */
export const causeIn = (metrics: string): string | undefined => {
  const causes = [...metrics.matchAll(row)].flatMap(([, labels = "", count]) => {
    const label = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    return Number(count) > 0 ? [`${label("outcome")}: ${label("reason")}`] : [];
  });
  return causes.length === 0 ? undefined : causes.sort().join(", ");
};
