/**
 * Maps the finish reasons that mean a refusal or the model's own length limit.
 *
 * A finish is a failure only if a run says so, because another model may answer the same request. A response that reached the request's own
 * limit is not a failure, because every model would be cut there.
 */
import type { Failure } from "../../domain/Failure.ts";

/** Finishes that a run may treat as failures. */
export type FinishFailure = "refused" | "empty" | "model_length";

/** Finish reasons in lower case. All protocols share one table, because no reason has two meanings. */
const words: ReadonlyMap<string, Exclude<FinishFailure, "empty">> = new Map([
  // OpenAI and Azure, Anthropic, and the names that gateways use for other filters.
  ...["content_filter", "content-filter", "content_filtered", "refusal", "guardrail_intervened", "error_toxic"].map(
    (word) => [word, "refused"] as const,
  ),
  // Gemini; `language` means that the model does not speak the language.
  ...["safety", "recitation", "language", "blocklist", "prohibited_content", "spii", "image_safety"].map(
    (word) => [word, "refused"] as const,
  ),
  // Zhipu GLM.
  ["sensitive", "refused"],
  // Anthropic, a name for a full context window, Mistral. `length` and `max_tokens` are excluded, because they may be the request's own
  // limit.
  ...["model_context_window_exceeded", "context_length_exceeded", "model_length"].map(
    (word) => [word, "model_length"] as const,
  ),
]);

/**
 * Returns a failure if the run treats this finish as one. An empty response is detected by its facts, not here.
 *
 * @param finish the provider's own finish reason; undefined if there is none
 * @param taken finishes that the run treats as failures
 */
export const finishFailure = (
  finish: string | undefined,
  taken: ReadonlyArray<FinishFailure> = [],
): Failure | undefined => {
  const kind = words.get((finish ?? "").toLowerCase());
  return kind !== undefined && taken.includes(kind) ? { kind } : undefined;
};
