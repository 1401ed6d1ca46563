/**
 * Converts failures of runs and exchanges to errors of `effect/ai`, and remembers the original errors.
 *
 * An `AiError` of the wrapped model stays unchanged (L12). Otherwise an `AiError` is created. Each is associated with its original error,
 * so that no failure is classified twice and programs need not parse messages.
 */
import { Duration } from "effect";
import { AiError } from "effect/ai";
import type { ProviderError } from "../../client/index.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";

const interruptions = new WeakMap<AiError.AiError, RunInterrupted>();
const exchanges = new WeakMap<AiError.AiError, ProviderError>();
const made = new WeakMap<object, AiError.AiError>();

/**
 * Returns the reason why a recovered model failed for good: the run's rule, its failure, what happened and what is safe to do.
 *
 * @param error an error of `streamText`, `generateText` or `generateObject`
 * @returns undefined for an error that is not the end of a run
 */
export const interruptionOf = (error: AiError.AiError): RunInterrupted | undefined => interruptions.get(error);

/**
 * Creates the error for a run that has ended without a complete response.
 *
 * @param method the method of the language model that was called
 * @param interrupted the end of the run
 * @param cause the provider's own error, if it is not the cause of `interrupted`
 */
export const ofRun = (method: string, interrupted: RunInterrupted, cause: unknown = interrupted.cause) => {
  const error =
    findAiError(cause) ??
    AiError.make({
      module: "EffectAi",
      method,
      reason: reasonOf(interrupted.failure, interrupted.message, "run"),
    });
  interruptions.set(error, interrupted);
  return error;
};

/**
 * Creates the error of one exchange with a provider.
 *
 * @param method the method of the language model that was called
 * @param error the client's error
 */
export const ofExchange = (method: string, error: ProviderError): AiError.AiError => {
  const before = made.get(error);
  if (before !== undefined) return before;
  const reason = reasonOf(error.reason, wordsOf(error.cause) ?? error.message, "exchange", error);
  const found = AiError.make({ module: "ProviderModel", method, reason });
  exchanges.set(found, error);
  made.set(error, found);
  return found;
};

/** Returns the client's error from which an `AiError` was created, because it has more details. Returns any other error unchanged. */
export const sourceOf = (error: AiError.AiError): AiError.AiError | ProviderError => exchanges.get(error) ?? error;

const findAiError = (cause: unknown): AiError.AiError | undefined => {
  if (AiError.isAiError(cause)) return cause;
  return typeof cause === "object" && cause !== null ? made.get(cause) : undefined;
};

/**
 * Picks the `AiError` reason for a failure. A run that has ended decided that an identical request is not safe, so its error must not
 * suggest a retry. Its transport failures are therefore `UnknownError`.
 */
const reasonOf = (
  failure: Failure,
  description: string,
  end: "run" | "exchange",
  cause?: unknown,
): AiError.AiErrorReason => {
  const wait = failure.retry_after_ms === undefined ? {} : { retryAfter: Duration.millis(failure.retry_after_ms) };
  switch (failure.kind) {
    case "rate_limited":
      return new AiError.RateLimitError(wait);
    case "overloaded":
    case "server_error":
      return new AiError.InternalProviderError({ description });
    case "rejected":
      return rejectionReason(failure, description);
    case "protocol":
    case "truncated":
      return end === "run"
        ? new AiError.UnknownError({ description })
        : new AiError.InvalidResponseError({ description });
    case "transport":
    case "stalled":
      return end === "run" ? new AiError.UnknownError({ description }) : networkReason(description, cause);
    case "invalid_tool_input":
      return new AiError.InvalidOutputError({ description });
    default:
      return new AiError.UnknownError({ description });
  }
};

const rejectionReason = (
  failure: Extract<Failure, { readonly kind: "rejected" }>,
  description: string,
): AiError.AiErrorReason => {
  switch (failure.reason) {
    case "auth":
      return new AiError.AuthenticationError({ kind: "InvalidKey", description });
    case "permission":
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description });
    case "quota":
      return new AiError.QuotaExhaustedError({});
    case "content_policy":
      return new AiError.ContentPolicyError({ description });
    default:
      return new AiError.InvalidRequestError({ description, constraint: failure.reason });
  }
};

/** The address is omitted, because it may contain a key. */
const networkReason = (description: string, cause: unknown): AiError.AiErrorReason =>
  new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "", description, cause });

/** Maximum length of a provider's error in a description, in UTF-16 code units. */
const wordsCharactersMax = 2_000;

/** Returns the body of the provider's error response. Like other provider packages, this package shows it to people. */
const wordsOf = (cause: unknown): string | undefined => {
  const body = typeof cause === "object" && cause !== null && "body" in cause ? cause.body : undefined;
  return typeof body === "string" && body !== "" ? body.slice(0, wordsCharactersMax) : undefined;
};
