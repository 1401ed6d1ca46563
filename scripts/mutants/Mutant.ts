/**
 * Describes a mutant: one old or wrong behaviour, put back into a copy of the sources, and the proofs that must notice it.
 */

/** What is tried against a mutant, in order, until one proof fails as it should. */
export type Proof =
  /** A simulation, `runs` seeds from `seed` on (its own first seed where none is given); `npm run simulate`. */
  | { readonly simulate: "runs" | "crash" | "liveness"; readonly seed?: number; readonly runs: number }
  /** A test file, or the tests of it whose whole names (those of their describe blocks before it) hold `named`. */
  | { readonly test: string; readonly named?: string };

/** One change that a proof has to notice. */
export interface Mutant {
  /** What goes wrong with it, as one plain sentence in small letters. */
  readonly name: string;
  /** What it breaks: a law (`L8`) or a promise, and the break that taught it where there was one. */
  readonly breaks: string;
  /** A function, method, class, constant or field that the change stands in. */
  readonly within: string;
  /** Text that stands exactly once in all of `src`, whatever file it is in. */
  readonly find: string;
  readonly replace: string;
  readonly proofs: readonly [Proof, ...Array<Proof>];
}
