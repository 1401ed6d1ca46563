/**
 * Says which words of a finish mean that the model refused, or that its own length was over.
 *
 * A finish is a failure only where a run says so: another model may answer the same request. A cut by the limit that the request itself
 * has set is none, because every model would be cut there.
 */
import type { Failure } from "../../domain/Failure.ts";

/** Finishes that a run may take for failures. */
export type FinishFailure = "refused" | "empty" | "model_length";

/** The words in lower case. Those of all protocols stand in one table: none clash. */
const words: ReadonlyMap<string, Exclude<FinishFailure, "empty">> = new Map([
  // OpenAI and Azure, Anthropic, and what gateways make of other filters.
  ...["content_filter", "content-filter", "content_filtered", "refusal", "guardrail_intervened", "error_toxic"].map(
    (word) => [word, "refused"] as const,
  ),
  // Gemini; `language` is a language that the model does not speak.
  ...["safety", "recitation", "language", "blocklist", "prohibited_content", "spii", "image_safety"].map(
    (word) => [word, "refused"] as const,
  ),
  // Zhipu GLM.
  ["sensitive", "refused"],
  // Anthropic, an API's name for a full window, Mistral. `length` and `max_tokens` may be the request's own limit.
  ...["model_context_window_exceeded", "context_length_exceeded", "model_length"].map(
    (word) => [word, "model_length"] as const,
  ),
]);

/**
 * The failure that a finish is, where a run takes it for one. A response with nothing in it says so by its facts, and not here.
 *
 * @param finish the provider's own word; undefined where it has none
 * @param taken what the run takes for a failure
 */
export const finishFailure = (
  finish: string | undefined,
  taken: ReadonlyArray<FinishFailure> = [],
): Failure | undefined => {
  const kind = words.get((finish ?? "").toLowerCase());
  return kind !== undefined && taken.includes(kind) ? { kind } : undefined;
};
