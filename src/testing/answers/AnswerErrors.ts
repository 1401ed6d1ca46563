/**
 * Writes a provider's errors in the words of its protocol: the JSON body of an error answer and the event inside a stream.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ProviderErrorName } from "../script/FaultScript.ts";

/** The HTTP status that a protocol gives to an error: OpenAI and Google overload with 503, Anthropic with 529. */
export const statusOf = (protocol: ProtocolId, error: ProviderErrorName): number => {
  switch (error) {
    case "rate_limited":
      return 429;
    case "overloaded":
      return protocol === "anthropic-messages" ? 529 : 503;
    case "server_error":
      return 500;
    case "context_overflow":
    case "invalid_request":
      return 400;
  }
};

/**
 * The error body that a protocol sends with a status.
 *
 * @param protocol the wire protocol
 * @param status the HTTP status of the answer
 */
export const errorBody = (protocol: ProtocolId, status: number): object => {
  switch (protocol) {
    case "anthropic-messages":
      return {
        type: "error",
        error: { type: anthropicTypes[status] ?? "api_error", message: `status ${status}` },
        request_id: "req_fault",
      };
    case "google-gemini":
      return { error: { code: status, message: `status ${status}`, status: googleStatuses[status] ?? "UNKNOWN" } };
    case "openai-chat":
    case "openai-responses":
      return {
        error: {
          message: `status ${status}`,
          type: openAiTypes[status] ?? "server_error",
          param: null,
          code: openAiCodes[status] ?? null,
        },
      };
  }
};

/** The body of a named error, as it stands inside a stream. */
export const namedError = (
  protocol: ProtocolId,
  error: ProviderErrorName,
): { readonly type: string; readonly code: string; readonly message: string } => {
  const names = protocol === "anthropic-messages" ? anthropicNames : openAiNames;
  return names[error];
};

const anthropicTypes: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const googleStatuses: Record<number, string> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

const openAiTypes: Record<number, string> = {
  400: "invalid_request_error",
  401: "invalid_request_error",
  403: "invalid_request_error",
  404: "invalid_request_error",
  429: "rate_limit_error",
};

const openAiCodes: Record<number, string> = {
  401: "invalid_api_key",
  404: "model_not_found",
  429: "rate_limit_exceeded",
};

const anthropicNames: Record<
  ProviderErrorName,
  { readonly type: string; readonly code: string; readonly message: string }
> = {
  rate_limited: { type: "rate_limit_error", code: "rate_limit_error", message: "Rate limited" },
  overloaded: { type: "overloaded_error", code: "overloaded_error", message: "Overloaded" },
  server_error: { type: "api_error", code: "api_error", message: "Internal server error" },
  context_overflow: {
    type: "invalid_request_error",
    code: "invalid_request_error",
    message: "prompt is too long: 200001 tokens > 200000 maximum",
  },
  invalid_request: {
    type: "invalid_request_error",
    code: "invalid_request_error",
    message: "messages: field required",
  },
};

const openAiNames: typeof anthropicNames = {
  rate_limited: { type: "rate_limit_error", code: "rate_limit_exceeded", message: "Rate limit reached" },
  overloaded: { type: "server_error", code: "server_is_overloaded", message: "The server is overloaded" },
  server_error: { type: "server_error", code: "server_error", message: "The server had an error" },
  context_overflow: {
    type: "invalid_request_error",
    code: "context_length_exceeded",
    message: "Your input exceeds the context window of this model",
  },
  invalid_request: { type: "invalid_request_error", code: "invalid_prompt", message: "Invalid prompt" },
};
