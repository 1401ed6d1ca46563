/** Writes errors as OpenAI does: the JSON body of an error response, and the names of errors inside a stream. */
import type { ProviderErrorName } from "../script/FaultScript.ts";

/** Builds the error body that OpenAI sends with a status. */
export const errorBody = (status: number): object => ({
  error: {
    message: `status ${status}`,
    type: openAiTypes[status] ?? "server_error",
    param: null,
    code: openAiCodes[status] ?? null,
  },
});

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

/** The names of an error inside a stream. */
export interface NamedError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
}

/** Errors inside a stream, by name. */
export const errors: Readonly<Record<ProviderErrorName, NamedError>> = {
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
