/**
 * Detects a response that ended by itself with nothing in it.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";

/**
 * Maximum output tokens of an empty response, because its end costs some. If its provider reports more, the model has worked
 * unseen (hidden reasoning, a tool of the provider), and asking again would pay for that twice.
 */
export const outputTokensMax = 8;

/**
 * Returns true if a response with these facts is empty: it has no call, no text but white space, and nothing else that is known.
 * Reasoning alone is not an answer.
 *
 * A limit, a filter, a refusal, a stop sequence and a pause are the provider's answer: the same request would meet them again.
 *
 * @param finish the provider's own finish reason; undefined if it gave none
 */
export const isEmpty = ({ counters, progress, terminal_seen }: AttemptFacts, finish: string | undefined): boolean =>
  terminal_seen &&
  progress !== "output" &&
  (progress === "reasoning" || counters.characters > 0 || (counters.output_tokens ?? 0) <= outputTokensMax) &&
  !otherEnd.test(finish ?? "");

/** Finish reasons that mean more than that the model was done, in all four protocols and in the servers that speak them. */
const otherEnd =
  /length|limit|max|window|filter|safety|refus|block|prohibit|recitation|spii|guard|toxic|sensitive|language|sequence|pause|time|error|other|cancel|abort/i;
