/**
 * Describes the facts of an attempt: the progress of its request, the output that was shown, the state of each call, and amounts, for
 * example lengths.
 */
import { type AttemptFacts, Delivery, Progress, Shown, type ToolRow } from "../domain/AttemptFacts.ts";
import { formatLasting, groupDigits } from "./Times.ts";
import { effects, phases } from "./Words.ts";

/** Maximum calls that are described one by one. The others are only counted. */
const callsToldMax = 6;

/** Describes the facts of an attempt in sentences. */
export const factSentences = (facts: AttemptFacts): ReadonlyArray<string> => [
  `${deliveries[facts.delivery]} and ${progresses[facts.progress]}.`,
  `The caller had received ${shows[facts.shown]}.`,
  ...(facts.tools.length === 0 ? ["No tool was called."] : facts.tools.slice(0, callsToldMax).map(toolSentence)),
  ...(facts.tools.length > callsToldMax ? [`Further calls on record: ${facts.tools.length - callsToldMax}.`] : []),
  ...guardSentence(facts.side_effects),
  ...(facts.terminal_seen ? ["The provider's end marker arrived."] : []),
];

const deliveries = {
  not_sent: "No byte of the request had been written",
  ambiguous: "The request may or may not have reached the provider",
  accepted: "The provider had accepted the request",
} as const;

const progresses = {
  none: "nothing had come back",
  started: "the response had started, without content",
  reasoning: "the model was thinking",
  output: "the model was writing its response",
} as const;

const shows = { nothing: "no text", reasoning: "reasoning, but no text", text: "text" } as const;

const toolSentence = ({ effect, phase, tool }: ToolRow): string =>
  `A call to ${tool}, which ${effects[effect]}, ${phases[phase].had}.`;

const guardSentence = (exposed: AttemptFacts["side_effects"]): ReadonlyArray<string> => {
  if (exposed === null) return ["The possible side effects of the request were not known."];
  const counts = [...Object.values(exposed.runtime), ...Object.values(exposed.provider)];
  if (counts.every((count) => count === 0)) return [];
  return [
    exposed.guarded
      ? "ToolGuard controls every tool: a call that has not started can no longer start."
      : "We cannot rule out that a tool still starts.",
  ];
};

/** Lists the amounts of an attempt, for example lengths, but never text. */
export const amounts = ({ counters, terminal_seen, tools }: AttemptFacts): ReadonlyArray<string> => [
  ...(counters.parts > 0 ? [`${groupDigits(counters.parts)} parts`] : []),
  ...(counters.bytes > 0 ? [`${groupDigits(counters.bytes)} bytes`] : []),
  ...(counters.characters > 0 ? [`${groupDigits(counters.characters)} characters`] : []),
  ...(counters.input_tokens === undefined ? [] : [`${groupDigits(counters.input_tokens)} tokens in`]),
  ...(counters.output_tokens === undefined ? [] : [`${groupDigits(counters.output_tokens)} tokens out`]),
  tools.length === 0 ? "no tool called" : `${tools.length} ${tools.length === 1 ? "call" : "calls"}`,
  ...(counters.suspended_ms === undefined ? [] : [`machine slept ${formatLasting(counters.suspended_ms)}`]),
  ...(terminal_seen ? ["end marker seen"] : []),
];

/** A fact of an attempt in words, with how far it has grown. */
export interface Grown {
  readonly name: string;
  readonly value: string;
  /** Number of steps after the first one. `reached` says how many of these were reached. */
  readonly steps: number;
  readonly reached: number;
}

/** Lists the growth of an attempt's facts, which never shrink (L1). */
export const growth = ({ delivery, progress, shown }: AttemptFacts): ReadonlyArray<Grown> => [
  growthOf("Request", Delivery.literals, delivery),
  growthOf("Response", Progress.literals, progress),
  growthOf("Shown", Shown.literals, shown),
];

const growthOf = (name: string, steps: ReadonlyArray<string>, value: string): Grown => ({
  name,
  value: value.replaceAll("_", " "),
  steps: steps.length - 1,
  reached: steps.indexOf(value),
});
