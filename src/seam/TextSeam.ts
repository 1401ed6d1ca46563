/**
 * Describes the continuation of shown text: an implementation reads the parts of a run, plans the next request, and joins the parts
 * of its response to those that have left.
 */
import type { Observation } from "../domain/Observation.ts";
import type { PrefillForm, SeamFault, SeamProof, SeamRefusal } from "../domain/SeamWords.ts";

/** Maximum text of a response that is continued, in UTF-16 code units: a continuation pays for it again. */
export const shownCharactersMax = 64 * 1024;

/** The plan of the next request. */
export interface SeamPlan {
  /** The technique of the request, and the proof of its seam. */
  readonly proof: SeamProof;
  /** Length of the response's text that was shown, in UTF-16 code units: the position of the seam. */
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
  /** Replacements for the part: none until the seam is proven. */
  | (SeamParts<P> & { readonly type: "passed"; readonly joined: boolean })
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins the parts of one continuation, in order. */
export interface SeamJoin<P> {
  /** Takes a part as it arrived, with its observation. */
  readonly take: (part: P, observation: Observation) => SeamPassed<P>;
  /** Ends a response that finished cleanly, and releases what was still held. */
  readonly end: () => SeamPassed<P>;
}

/**
 * Continues the text of one run. It holds that run's state, so runs never share it. Its methods are called in the order of the run
 * and must not throw.
 */
export interface TextSeam<P> {
  /** Called when a response begins: earlier text is closed, or was withdrawn. */
  readonly begins: () => void;
  /** Called once for each part that has left for the caller, in order. */
  readonly left: (part: P, observation: Observation) => void;
  /** Plans the continuation of what has left, or returns the reason why there is none. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Starts a continuation. */
  readonly joins: (plan: SeamPlan) => SeamJoin<P>;
  /** Called when the provider has refused a prefill: the next plan has an anchor. */
  readonly refused: (plan: SeamPlan) => void;
}
