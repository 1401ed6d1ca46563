/**
 * Says whether a response that has ended by itself has nothing in it.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";

/**
 * Most output tokens of a response with nothing in it: its end alone costs one. Where its provider tells of more, the model has
 * worked unseen (reasoning that is hidden, a tool of the provider's), and asking again would pay for that twice.
 */
export const outputTokensMax = 1;

/**
 * Whether a response with these facts is empty.
 *
 * A limit, a filter, a refusal, a stop sequence and a pause are the provider's answer: the same request would meet them again.
 *
 * @param finish the provider's own word for its end; undefined where it has none
 */
export const isEmpty = ({ counters, progress, terminal_seen }: AttemptFacts, finish: string | undefined): boolean =>
  terminal_seen &&
  (progress === "none" || progress === "started") &&
  (counters.output_tokens ?? 0) <= outputTokensMax &&
  !otherEnd.test(finish ?? "");

/** Finishes that say more than that the model was done, in the words of all four protocols and of servers that speak them. */
const otherEnd =
  /length|limit|max|window|filter|safety|refus|block|prohibit|recitation|spii|guard|toxic|sensitive|language|sequence|pause|time|error|other|cancel|abort/i;
