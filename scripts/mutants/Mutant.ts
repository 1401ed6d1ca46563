/**
 * A mutant: one old or wrong behaviour that is introduced into a copy of the sources, and the proofs that must notice it.
 */
import { Schema } from "effect";

const Text = Schema.NonEmptyString;

/** A proof that is tried against a mutant. Proofs are tried in order until one fails. */
export const Proof = Schema.Union([
  /** A simulation (`npm run simulate`) with `runs` seeds from `seed`; the default is the simulation's own first seed. */
  Schema.Struct({
    simulate: Schema.Literals(["runs", "crash", "liveness", "gateway"]),
    seed: Schema.optionalKey(Schema.Natural),
    runs: Schema.Natural,
  }),
  /** A test file, or those of its tests whose full names contain `named`. */
  Schema.Struct({ test: Text, named: Schema.optionalKey(Text) }),
]);
export type Proof = typeof Proof.Type;

/** One change that a proof must notice. */
export const Mutant = Schema.Struct({
  /** The fault, as a sentence in lower case. */
  name: Text,
  /** The law (for example `L8`) or promise that it breaks. */
  breaks: Text,
  /** The function, method, class, constant or field that contains the change. */
  within: Text,
  /** Text that occurs exactly once in all files of `src`. */
  find: Text,
  replace: Schema.String,
  proofs: Schema.NonEmptyArray(Proof),
});
export type Mutant = typeof Mutant.Type;
