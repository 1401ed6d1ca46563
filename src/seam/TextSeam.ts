/**
 * Defines how shown text is continued. The seam is the place where a continuation joins the shown text. An implementation reads the parts
 * of a run, plans the next request, and joins the parts of its response to those that were already delivered.
 */
import type { Observation } from "../domain/Observation.ts";
import type { PrefillForm, SeamFault, SeamProof, SeamRefusal } from "../domain/SeamWords.ts";

/** Maximum length of a response's text that can be continued, in UTF-16 code units. A continuation pays for all of that text again. */
export const shownCharactersMax = 64 * 1024;

/** Plan of the request that continues the shown text. */
export interface SeamPlan {
  /** The technique of the request, which also determines how the seam is proven. */
  readonly proof: SeamProof;
  /** Position of the seam: the length of the shown text of the response, in UTF-16 code units. */
  readonly at: number;
  /** The end of the shown text that the request quotes. With `prefill`, the whole text run. */
  readonly quote: string;
  /** With `prefill`: the form of the request. */
  readonly form?: PrefillForm;
}

/** Parts, each with the observation at the same index. */
export interface SeamParts<P> {
  readonly parts: ReadonlyArray<P>;
  readonly observations: ReadonlyArray<Observation>;
}

/** Result of joining a part of a continuation. */
export type SeamPassed<P> =
  /** Parts to deliver in place of the given part. Empty until the seam is proven. */
  | (SeamParts<P> & { readonly type: "passed"; readonly joined: boolean })
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Joins the parts of one continuation to the shown parts, in order. */
export interface SeamJoin<P> {
  /** Joins the next part, unchanged as it arrived, with its observation. */
  readonly take: (part: P, observation: Observation) => SeamPassed<P>;
  /** Called at the clean end of the response. Held parts are released. */
  readonly end: () => SeamPassed<P>;
}

/**
 * Continues the text of one run. It holds state of the run, so each run has its own. The methods are called in the order of the run's
 * events and must not throw.
 */
export interface TextSeam<P> {
  /** Called when a response begins. Earlier text has then ended or was withdrawn. */
  readonly begins: () => void;
  /** Called for each part that was delivered to the caller, in order. */
  readonly left: (part: P, observation: Observation) => void;
  /** Plans the continuation of the delivered parts. Returns the reason if there can be none. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Creates the join for the response that a planned request gets. */
  readonly joins: (plan: SeamPlan) => SeamJoin<P>;
  /** Called when the provider has rejected a prefill. The next plan then uses an anchor. */
  readonly refused: (plan: SeamPlan) => void;
}
