/**
 * Holds the mutants of the adapters, and of what runs without Node.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/adapters`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "the adapter of Effect AI brings the client of Node along",
    breaks: "./effect-ai bundles for browsers and edge",
    within: "EffectAi",
    find: `export * as EffectAi from "./EffectAiModel.ts";`,
    replace: `export * as EffectAi from "./EffectAiModel.ts";\nexport * as ProviderModel from "./ProviderModel.ts";`,
    proofs: [{ test: "test/portable/Portable.test.ts", named: "./effect-ai" }],
  },
];
