/**
 * Describes what a run needs to go on with a text that was shown: what reads its parts, plans the next request and joins the
 * parts of its response to those that have left.
 */
import type { Observation } from "../domain/Observation.ts";
import type { PrefillForm, SeamFault, SeamProof, SeamRefusal } from "../domain/SeamWords.ts";

/** Longest text of a response that is gone on with, in UTF-16 code units: what a continuation would pay again. */
export const shownCharactersMax = 64 * 1024;

/** How the next request goes on with what was shown. */
export interface SeamPlan {
  /** What the request asks for, and what will prove the seam. */
  readonly proof: SeamProof;
  /** How much text of the response was shown, in UTF-16 code units: where the seam will be. */
  readonly at: number;
  /** What the request quotes of the end of the shown text; with `prefill` it is all of the text run. */
  readonly quote: string;
  /** With `prefill`: how the request says that the text is to be gone on with. */
  readonly form?: PrefillForm;
}

/** Parts beside what each proves. */
export interface SeamParts<P> {
  readonly parts: ReadonlyArray<P>;
  readonly observations: ReadonlyArray<Observation>;
}

/** What becomes of a part of a continuation. */
export type SeamPassed<P> =
  /** These parts may go on in its place: none while the seam is not proven. */
  | (SeamParts<P> & { readonly type: "passed"; readonly joined: boolean })
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins the parts of one continuation, in order. */
export interface SeamJoin<P> {
  /** Takes a part as it came, with what it proves. */
  readonly take: (part: P, observation: Observation) => SeamPassed<P>;
  /** The response has ended cleanly: gives what was still held. */
  readonly end: () => SeamPassed<P>;
}

/**
 * What one run goes on with. It holds the run's own state, so that each run has another one. Its methods are called in the order
 * of the run and must not throw.
 */
export interface TextSeam<P> {
  /** A response begins: what was shown before is closed, or was withdrawn. */
  readonly begins: () => void;
  /** A part has left for the caller: each once, in order. */
  readonly left: (part: P, observation: Observation) => void;
  /** How the response would go on behind what has left, or why it cannot. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Begins a continuation. */
  readonly joins: (plan: SeamPlan) => SeamJoin<P>;
  /** The provider has refused a prefill: the next plan has an anchor. */
  readonly refused: (plan: SeamPlan) => void;
}
