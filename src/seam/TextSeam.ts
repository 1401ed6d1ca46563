/**
 * Describes the continuation of shown text. An implementation reads the parts of a run, plans the next request, and joins the parts of its
 * response to those that have already left.
 */
import type { Observation } from "../domain/Observation.ts";
import type { PrefillForm, SeamFault, SeamProof, SeamRefusal } from "../domain/SeamWords.ts";

/** Maximum text of a response that is continued, in UTF-16 code units, because a continuation pays for all of it again. */
export const shownCharactersMax = 64 * 1024;

/** The plan of the next request. */
export interface SeamPlan {
  /** The technique of the request, which also proves its seam. */
  readonly proof: SeamProof;
  /** The position of the seam: the length of the response's text that was shown, in UTF-16 code units. */
  readonly at: number;
  /** The end of the shown text as the request quotes it; with `prefill`, the whole text run. */
  readonly quote: string;
  /** With `prefill`: the form in which the request asks to continue the text. */
  readonly form?: PrefillForm;
}

/** Parts, each with its observation. */
export interface SeamParts<P> {
  readonly parts: ReadonlyArray<P>;
  readonly observations: ReadonlyArray<Observation>;
}

/** The result for a part of a continuation. */
export type SeamPassed<P> =
  /** Replacements for the part; empty until the seam is proven. */
  | (SeamParts<P> & { readonly type: "passed"; readonly joined: boolean })
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins the parts of one continuation, in order. */
export interface SeamJoin<P> {
  /** Takes a part as it arrived, with its observation. */
  readonly take: (part: P, observation: Observation) => SeamPassed<P>;
  /** Ends a response that finished cleanly, and releases parts that were still held. */
  readonly end: () => SeamPassed<P>;
}

/**
 * Continues the text of one run. It holds that run's state, so runs never share it. Its methods are called in the order of the run
 * and must not throw.
 */
export interface TextSeam<P> {
  /** Called when a response begins. Earlier text is then closed or was withdrawn. */
  readonly begins: () => void;
  /** Called once for each part that has left to the caller, in order. */
  readonly left: (part: P, observation: Observation) => void;
  /** Plans the continuation of the parts that have left, or returns the reason why there is none. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Starts a continuation. */
  readonly joins: (plan: SeamPlan) => SeamJoin<P>;
  /** Called when the provider has rejected a prefill. The next plan has an anchor instead. */
  readonly refused: (plan: SeamPlan) => void;
}
