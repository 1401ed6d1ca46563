/**
 * Names the proofs, refusals and faults of a seam, the place where a continuation joins the shown text.
 */
import * as Schema from "effect/Schema";

/**
 * Proof of a seam. `anchor`: the new text began with the end of the shown text, which was removed. `prefill`: the provider declares that it
 * continues the text in the request.
 */
export const SeamProof = Schema.Literals(["anchor", "prefill"]);
export type SeamProof = typeof SeamProof.Type;

/**
 * Form in which a request marks its last message for continuation. `trailing`: the request ends with that message and has no mark. `prefix`
 * and `partial`: a mark on the message. `continue_final_message`: a mark on the request.
 */
export const PrefillForm = Schema.Literals(["trailing", "prefix", "partial", "continue_final_message"]);
export type PrefillForm = typeof PrefillForm.Type;

/** Reason that shown text is not continued. No request is sent then. */
export const SeamRefusal = Schema.Literals([
  /** The caller provided no seam, or this process does not know which text was shown. */
  "no_seam",
  /** The response must be one whole JSON document. */
  "structured_output",
  /** The request asks for several responses at once. */
  "several_choices",
  /** Tokens are reported one by one, and a token may span the seam. */
  "logprobs",
  /** The response is audio or pictures. */
  "not_text",
  /** The provider stores the response or the conversation, so a continuation would be stored in addition to it. */
  "server_state",
  /** The request requires a call. */
  "forced_tool",
  /** The provider's own refusal was shown. */
  "refusal_shown",
  /** Something other than text, for example a call, was shown after the text, or a call was cut there. */
  "not_text_last",
  /** The anchor occurs more than once in the shown text. */
  "repeats_itself",
  /** So much text was shown that paying for it again is not worthwhile. */
  "too_long",
  /** Only white space was shown. */
  "blank",
  /** The run has used its maximum number of seams. */
  "seams_spent",
  /** A seam of this run could not be proven, so the run has no further seam. */
  "unproven",
  /** The next request cannot be built. */
  "unbuildable",
]);
export type SeamRefusal = typeof SeamRefusal.Type;

/** Reason that a continuation is not joined. */
export const SeamFault = Schema.Literals([
  /** The new text differs from the anchor. */
  "differs",
  /** The new text ended inside the anchor. */
  "stopped",
  /** A call, a hosted tool, a picture or a refusal arrived before the anchor was complete. */
  "not_text",
  /** Something that was shown is repeated after the seam. */
  "repeats",
  /** The event that joins the texts cannot be written in the protocol. */
  "unwritable",
]);
export type SeamFault = typeof SeamFault.Type;
