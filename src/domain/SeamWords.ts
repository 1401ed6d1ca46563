/**
 * Names what is said of a seam, the place where a shown text goes on: how it is proven, and why it cannot be.
 */
import * as Schema from "effect/Schema";

/**
 * How a seam is proven. `anchor`: the new text began with the end of what was shown, and was cut behind it. `prefill`: the
 * provider has declared that it goes on behind the text that it is given.
 */
export const SeamProof = Schema.Literals(["anchor", "prefill"]);
export type SeamProof = typeof SeamProof.Type;

/**
 * How a request says that its last message is to be gone on with. `trailing`: it ends with it, and says no more. `prefix` and
 * `partial`: the message says so. `continue_final_message`: the request does.
 */
export const PrefillForm = Schema.Literals(["trailing", "prefix", "partial", "continue_final_message"]);
export type PrefillForm = typeof PrefillForm.Type;

/** Why a shown text is not gone on with: nothing is asked of the provider. */
export const SeamRefusal = Schema.Literals([
  /** The caller has given nothing that joins texts, or what was shown is not known to this process. */
  "no_seam",
  /** The response has to be one whole JSON document. */
  "structured_output",
  /** The request asks for several responses at once. */
  "several_choices",
  /** Tokens are told one by one, and one may lie across the seam. */
  "logprobs",
  /** The response is audio or pictures. */
  "not_text",
  /** The provider keeps the response or the conversation: a second one would stand beside it. */
  "server_state",
  /** The request demands a call. */
  "forced_tool",
  /** The provider's own refusal was shown. */
  "refusal_shown",
  /** A call, or something else that is no text, was shown behind the text or cut in it. */
  "not_text_last",
  /** The anchor stands more than once in what was shown. */
  "repeats_itself",
  /** More was shown than is worth paying again. */
  "too_long",
  /** What was shown is white space alone. */
  "blank",
  /** The run has as many seams as it may have. */
  "seams_spent",
  /** A seam of this response could not be proven, and the run goes on without another. */
  "unproven",
  /** The next request cannot be built. */
  "unbuildable",
]);
export type SeamRefusal = typeof SeamRefusal.Type;

/** Why a continuation is not joined. */
export const SeamFault = Schema.Literals([
  /** The new text differs from the anchor. */
  "differs",
  /** The new text ended inside the anchor. */
  "stopped",
  /** A call, a hosted tool, a picture or a refusal came before the anchor was whole. */
  "not_text",
  /** Behind the seam something comes again that was shown. */
  "repeats",
  /** The event that joins cannot be written in the protocol. */
  "unwritable",
]);
export type SeamFault = typeof SeamFault.Type;
