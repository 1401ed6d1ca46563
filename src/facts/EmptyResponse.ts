/** Detects a response that ended by itself without any content. */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";

/**
 * Maximum output tokens of an empty response; even its end costs some tokens. If the provider reports more, the model has done invisible
 * work (hidden reasoning, a tool of the provider), and a retry would pay for that work twice.
 */
export const outputTokensMax = 8;

/**
 * Returns true if a response with these facts is empty: it has no call, no text except white space, and no other known content. Reasoning
 * alone is not an answer.
 *
 * A response that ended at a limit, a filter, a refusal, a stop sequence or a pause is not empty, because the same request would end there
 * again.
 *
 * @param finish the provider's own finish reason; undefined if there is none
 */
export const isEmpty = ({ counters, progress, terminal_seen }: AttemptFacts, finish: string | undefined): boolean =>
  terminal_seen &&
  progress !== "output" &&
  (progress === "reasoning" || counters.characters > 0 || (counters.output_tokens ?? 0) <= outputTokensMax) &&
  !otherEnd.test(finish ?? "");

/** Matches finish reasons that mean something other than the model's normal end, in all protocols and in servers that imitate them. */
const otherEnd =
  /length|limit|incomplete|budget|continuation|max|window|filter|safety|refus|block|prohibit|recitation|spii|guard|toxic|sensitive|language|sequence|pause|time|error|other|cancel|abort/i;
