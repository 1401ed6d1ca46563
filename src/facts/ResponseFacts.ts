/**
 * Joins the facts of the attempts that read one response: the one that asked for it, and those that resumed it.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import { join } from "./Growth.ts";

/**
 * The facts of a response as far as it was read.
 *
 * @param attempts the facts of its attempts, in the order in which they read it; at least one
 */
export const joined = ([first, ...resumed]: readonly [AttemptFacts, ...Array<AttemptFacts>]): AttemptFacts =>
  resumed.reduce((before, facts, index) => join(before, after(before, facts, index + 1)), first);

/** The facts of a later attempt: its calls are other calls, and what happened in it happened after what came before. */
const after = (before: AttemptFacts, facts: AttemptFacts, index: number): AttemptFacts => {
  const ticks = Math.max(before.text_through, before.call_through, before.settled_through);
  const later = (tick: number) => (tick === 0 ? 0 : tick + ticks);
  return {
    ...facts,
    text_through: later(facts.text_through),
    call_through: later(facts.call_through),
    settled_through: later(facts.settled_through),
    tools: facts.tools.map((row) => ({ ...row, call: `${index + 1}/${row.call}` })),
  };
};
