/**
 * Says whether a response that has ended by itself has nothing in it.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";

/**
 * Maximum output tokens of a response without a word: its end costs some. If its provider reports more, the model has worked unseen
 * (hidden reasoning, a tool of the provider), and asking again would pay for that twice.
 */
export const outputTokensMax = 8;

/**
 * Whether a response with these facts is empty: it has no call, no text but white space, and nothing else that is known. Thoughts alone
 * are no answer.
 *
 * A limit, a filter, a refusal, a stop sequence and a pause are the provider's answer: the same request would meet them again.
 *
 * @param finish the provider's own word for its end; undefined where it has none
 */
export const isEmpty = ({ counters, progress, terminal_seen }: AttemptFacts, finish: string | undefined): boolean =>
  terminal_seen &&
  progress !== "output" &&
  (progress === "reasoning" || counters.characters > 0 || (counters.output_tokens ?? 0) <= outputTokensMax) &&
  !otherEnd.test(finish ?? "");

/** Finishes that say more than that the model was done, in the words of all four protocols and of servers that speak them. */
const otherEnd =
  /length|limit|max|window|filter|safety|refus|block|prohibit|recitation|spii|guard|toxic|sensitive|language|sequence|pause|time|error|other|cancel|abort/i;
