/**
 * Describes a mutant: one old or wrong behaviour, put back into a copy of the sources, and the proofs that must notice it.
 */
import { Schema } from "effect";

const Text = Schema.NonEmptyString;

/** A proof that is tried against a mutant; they are tried in order until one fails as it should. */
export const Proof = Schema.Union([
  /** A simulation, `runs` seeds from `seed` on, by default its own first seed; `npm run simulate`. */
  Schema.Struct({
    simulate: Schema.Literals(["runs", "crash", "liveness"]),
    seed: Schema.optionalKey(Schema.Natural),
    runs: Schema.Natural,
  }),
  /** A test file, or its tests whose full names contain `named`. */
  Schema.Struct({ test: Text, named: Schema.optionalKey(Text) }),
]);
export type Proof = typeof Proof.Type;

/** One change that a proof has to notice. */
export const Mutant = Schema.Struct({
  /** The fault, as one plain sentence in small letters. */
  name: Text,
  /** The law (`L8`) or promise that it breaks. */
  breaks: Text,
  /** The function, method, class, constant or field around the change. */
  within: Text,
  /** Text that occurs exactly once in all of `src`, in any file. */
  find: Text,
  replace: Schema.String,
  proofs: Schema.NonEmptyArray(Proof),
});
export type Mutant = typeof Mutant.Type;
