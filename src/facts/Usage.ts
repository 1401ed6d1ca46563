/**
 * Keeps the highest usage that a provider has told: some tell it in pieces, some again and again.
 */
import type { Usage } from "../domain/Observation.ts";

/** The higher of two usages, field by field. */
export const highest = (a: Usage | undefined, b: Usage): Usage => {
  const input = most(a?.input_tokens, b.input_tokens);
  const output = most(a?.output_tokens, b.output_tokens);
  return {
    ...(input === undefined ? {} : { input_tokens: input }),
    ...(output === undefined ? {} : { output_tokens: output }),
  };
};

const most = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);
