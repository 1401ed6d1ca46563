/**
 * Classifies the `finish_reason` of a chat completion: the choice ended, was cut, or the server failed.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";

/**
 * `whole`: the choice ended by itself, and its calls are complete. `cut`: the choice ended at a limit or a filter. That counts as the
 * terminal marker, but its calls may be incomplete. `failed`: the server aborted, which is never the marker. `invalid_call`: the choice
 * ended with a call that the server could not parse.
 */
export type Ending = "whole" | "cut" | "failed" | "invalid_call";

const endings: ReadonlyMap<string, Ending> = new Map<string, Ending>([
  // OpenAI, Mistral (model_length), and Anthropic and Gemini behind compatible endpoints.
  ...["length", "model_length", "max_tokens", "max_output_tokens", "content_filter", "safety", "refusal"].map(
    (reason) => [reason, "cut"] as const,
  ),
  // The API's own name for a full context window, then Cohere, watsonx, and the filters of Gemini and Bedrock behind gateways.
  ...[
    "model_context_window_exceeded",
    "context_length_exceeded",
    "max_length",
    "token_limit",
    "time_limit",
    "error_limit",
  ].map((reason) => [reason, "cut"] as const),
  ...["error_toxic", "content-filter", "content_filtered", "guardrail_intervened", "recitation", "blocklist"].map(
    (reason) => [reason, "cut"] as const,
  ),
  ...["prohibited_content", "spii", "image_safety", "language"].map((reason) => [reason, "cut"] as const),
  // TensorRT-LLM, Cohere, watsonx: the server aborted.
  ...["timeout", "server_error", "internal_error"].map((reason) => [reason, "failed"] as const),
  ...["cancelled", "canceled", "user_cancel"].map((reason) => [reason, "failed"] as const),
  // Zhipu GLM: `sensitive` is its content filter, `network_error` a failed inference.
  ["sensitive", "cut"],
  ["network_error", "failed"],
  // OpenRouter and Mistral.
  ["error", "failed"],
  // DeepSeek: "the request is interrupted due to insufficient resource of the inference system".
  ["insufficient_system_resource", "failed"],
  // vLLM and SGLang: the engine dropped the request.
  ["abort", "failed"],
  ["aborted", "failed"],
  ["malformed_function_call", "invalid_call"],
  ["unexpected_tool_call", "invalid_call"],
]);

/**
 * Maps a finish reason to its ending. An unknown reason counts as `whole`.
 *
 * @param native the reason of the server behind a gateway (OpenRouter's `native_finish_reason`). If it names a limit or a filter, a call
 *   may have been cut, regardless of the gateway's reason
 */
export const endingOf = (reason: string, native = ""): Ending => {
  const known = endings.get(reason.toLowerCase());
  if ((known ?? "whole") === "whole" && endings.get(native.toLowerCase()) === "cut") return "cut";
  if (known !== undefined) return known;
  // Gemini's compatible endpoint: `function_call_filter: MALFORMED_FUNCTION_CALL`.
  return /malformed_function_call|unexpected_tool_call/i.test(reason) ? "invalid_call" : "whole";
};

/** Returns the failure of a `failed` ending that came without an error object. */
export const failureOf = (reason: string): Failure => {
  const by = reason.toLowerCase();
  if (by === "insufficient_system_resource") return { kind: "overloaded", in_band: true };
  if (/^(?:user_)?(?:abort|cancel)/.test(by)) return { kind: "cancelled", by: "provider", in_band: true };
  return { kind: "server_error", in_band: true };
};

/** The failure of a finish with an unparseable call. The terminal marker has arrived, but the call cannot be used. */
export const invalidToolInput: Failure = { kind: "invalid_tool_input", in_band: true };

/** The failure if the unparseable call is part of the response. */
export const callUnread: Failure = { ...invalidToolInput, code: incompleteCall };
