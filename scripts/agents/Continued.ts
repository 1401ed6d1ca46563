/**
 * The breaks in shown text that a gateway with `--continue-text auto` is tested with. The provider continues its own answer, and the
 * outcome of each break is judged.
 */
import { Answers } from "../../src/testing/index.ts";
import type { Agent } from "./Agent.ts";
import type { Answer, Content, Fault } from "./Faults.ts";

/** Text in sentences. Some deltas end inside a word. */
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

/** Text with a block of code in the middle. */
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

/** Number of deltas of each text. */
export const deltasOf = 12;

/** A break after some deltas of the text. */
const breakAfter =
  (kind: "rst" | "end", deltas: number, content: (agent: Agent) => Content) =>
  (agent: Agent): Answer => {
    const events = Answers.render(agent.protocol, 1, { content: content(agent) });
    const last = events.findIndex(({ serials }) => serials.includes(`r1.${deltas - 1}·`));
    return { content: content(agent), break: { kind, at: "event", n: last + 1 } };
  };

/**
 * The breaks: within a sentence, after a sentence, in code, and before a call.
 *
 * @param call creates the agent's own shell call for an answer with a number
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
    fault("first sentence", breakAfter("rst", 1, text)),
    fault("half a word", breakAfter("rst", 6, text)),
    fault("clean end", breakAfter("end", 8, text)),
    fault("last sentence", breakAfter("rst", 11, text)),
    fault(
      "in code",
      breakAfter("rst", 4, () => [code]),
    ),
    fault("text, then a call", breakAfter("rst", 10, withCall), true),
    fault(
      "args behind text",
      (agent) => ({ content: withCall(agent), break: { kind: "rst", at: "tool_arguments" } }),
      true,
    ),
  ];
};

/** The provider's answers: the text that breaks, its continuation if requested, and a final text. */
export const continuedAnswers = (broken: Answer): ReadonlyArray<Answer> => [
  broken,
  { ...(broken.content === undefined ? {} : { content: broken.content }), goes_on: {} },
  { content: [{ text: 2 }] },
];

/**
 * Finds an error in the text that a user sees: a delta that is duplicated or out of order, or a missing end.
 */
export const findTextError = (text: string): "twice" | "short" | undefined => {
  const answers = Map.groupBy([...text.matchAll(/r(\d+)\.(\d+)·/g)], ([, request]) => request);
  for (const deltas of answers.values()) if (deltas.some(([, , delta], at) => Number(delta) !== at)) return "twice";
  const longest = Math.max(0, ...[...answers.values()].map(({ length }) => length));
  return longest < deltasOf ? "short" : undefined;
};

const row = /^stream_recovery_seams(?:_total)?\{([^}]*)\} (\d+)/gm;

/**
 * Reads from the gateway's metrics how it continued shown text: the proof, or the reason why there was none.
 *
 * @param metrics the text of `/metrics`
 * @returns for example `joined: anchor`; undefined if no continuation was attempted
 */
export const findCause = (metrics: string): string | undefined => {
  const causes = [...metrics.matchAll(row)].flatMap(([, labels = "", count]) => {
    const label = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    return Number(count) > 0 ? [`${label("outcome")}: ${label("reason")}`] : [];
  });
  return causes.length === 0 ? undefined : causes.sort().join(", ");
};
