/**
 * Follows the calls of a toy stream: each has a number, and its arguments come in pieces.
 */
import * as Json from "../../../src/domain/Json.ts";
import type { CallSignal } from "../../../src/domain/Observation.ts";

export interface Call {
  readonly tool: string;
  readonly input: string;
}

export type Calls = ReadonlyArray<Call>;

export const begin = (calls: Calls, tool: string): readonly [Calls, CallSignal] => [
  [...calls, { tool, input: "" }],
  signal(calls.length, tool, "input_started"),
];

export const append = (calls: Calls, ordinal: number, piece: string): Calls =>
  calls.map((call, at) => (at === ordinal ? { ...call, input: call.input + piece } : call));

/** A call whose arguments cannot be read never becomes ready. */
export const ready = (calls: Calls, ordinal: number): CallSignal | undefined => {
  const call = calls[ordinal];
  if (call === undefined || Json.parse(call.input) === undefined) return undefined;
  return { ...signal(ordinal, call.tool, "ready"), input: call.input };
};

const signal = (ordinal: number, tool: string, phase: CallSignal["phase"]): CallSignal => ({
  choice: 0,
  ordinal,
  tool,
  executor: "runtime",
  phase,
});
