/**
 * Says facts in plain words: how far a request got, what was shown, what each call did.
 */
import type { AttemptFacts, ToolRow } from "../../domain/AttemptFacts.ts";

/** What a mode sends. */
export const modes = {
  first: "the first request",
  replay: "the same request once more",
  continue: "a request that goes on from what is settled",
  resume: "the same response from where it broke",
} as const;

/** Most calls that are told one by one; what is more is counted. */
const callsToldMax = 6;

/** What was known of an attempt, in sentences. */
export const known = (facts: AttemptFacts): ReadonlyArray<string> => [
  `${deliveries[facts.delivery]} and ${progresses[facts.progress]}.`,
  `The caller had been handed ${shows[facts.shown]}.`,
  ...(facts.tools.length === 0 ? ["No tool was called."] : facts.tools.slice(0, callsToldMax).map(toolSentence)),
  ...(facts.tools.length > callsToldMax ? [`${facts.tools.length - callsToldMax} more calls are on record.`] : []),
  ...guardSentence(facts.side_effects),
];

const guardSentence = (exposed: AttemptFacts["side_effects"]): ReadonlyArray<string> => {
  if (exposed === null) return ["What the request could change was not known."];
  const counts = [...Object.values(exposed.runtime), ...Object.values(exposed.provider)];
  if (counts.every((count) => count === 0)) return [];
  return [
    exposed.guarded
      ? "Every tool stands behind the guard: what was not started cannot start any more."
      : "Nothing proves that a tool cannot start any more.",
  ];
};

const deliveries = {
  not_sent: "No byte of the request had been written",
  ambiguous: "The request may or may not have reached the provider",
  accepted: "The provider had accepted the request",
} as const;

const progresses = {
  none: "nothing had come back",
  started: "the answer had begun, without content",
  reasoning: "it was thinking",
  output: "it was writing its answer",
} as const;

const shows = { nothing: "no text", reasoning: "thoughts, but no text", text: "text" } as const;

const effects = { read_only: "only reads", mutating: "changes something", unknown: "has unknown effects" } as const;

/** How far a call had got. */
export const phases = {
  input_started: "was being written",
  input_complete: "was written",
  handed_over: "was handed over and had not been started",
  dispatched: "had been started",
  outcome_unknown: "had been started, with an unknown outcome",
  settled: "had run",
} as const;

const toolSentence = ({ effect, phase, tool }: ToolRow): string =>
  `A call of ${tool}, which ${effects[effect]}, ${phases[phase]}.`;
