/**
 * Draws the answers of a provider. A repeated request gets the same answer from its first part; a continuation gets another one.
 */
import * as Observation from "../../src/domain/Observation.ts";
import type { Dice } from "../../test/simulation/Dice.ts";

/** One part of an answer. */
export interface Part {
  /** The answer that it belongs to, and its position there from 1. */
  readonly answer: string;
  readonly number: number;
  readonly word: "start" | "reasoning" | "text" | "call" | "end";
  readonly says: Observation.Observation;
  /** Delay after the previous part, in milliseconds. */
  readonly delayMs: number;
}

/** The tool that every agent has. */
export const toolName = "pay";

const signal = { choice: 0, ordinal: 0, id: "call", tool: toolName, executor: "runtime" } as const;

/**
 * Draws an answer.
 *
 * @param calls true if it ends with a call of the agent's tool
 */
export const answerOf = (dice: Dice, answer: string, calls: boolean): ReadonlyArray<Part> => {
  const parts: Array<Part> = [];
  const add = (word: Part["word"], says: Observation.Observation, delayMs: number): void => {
    parts.push({ answer, number: parts.length + 1, word, says, delayMs });
  };
  add("start", Observation.lifecycle, 5);
  const pause = () => dice.between(40, 900);
  for (let left = dice.between(0, 4); left > 0; left -= 1) add("reasoning", Observation.reasoning(9), pause());
  for (let left = dice.between(calls ? 0 : 1, 5); left > 0; left -= 1) add("text", Observation.text(9), pause());
  if (calls) {
    add("call", Observation.calls([{ ...signal, phase: "input_started" }]), pause());
    add("call", Observation.calls([{ ...signal, phase: "ready", input: "{}" }]), pause());
  }
  add("end", Observation.terminal("stop"), pause());
  return parts;
};
