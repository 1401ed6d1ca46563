/**
 * Converts the failures of runs and exchanges to errors of `effect/ai`, and remembers the original errors.
 *
 * An `AiError` of the wrapped model is passed on unchanged (L12). If there is none, one is created. The original error is kept with each,
 * so that no failure is classified twice and no program has to parse messages.
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
 * @param error the error of `streamText`, `generateText` or `generateObject`
 * @returns undefined for an error that no run ended with
 */
export const interruptionOf = (error: AiError.AiError): RunInterrupted | undefined => interruptions.get(error);

/**
 * Creates the error of a run that could not or must not continue.
 *
 * @param method the method of the language model that was called
 * @param interrupted the end of the run
 * @param cause the provider's own error, if it is not the cause of `interrupted`
 */
export const ofRun = (method: string, interrupted: RunInterrupted, cause: unknown = interrupted.cause) => {
  const error =
    original(cause) ??
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

/** Returns the client's own error if an `AiError` was created from one, because the client's error has more details. */
export const sourceOf = (error: AiError.AiError): AiError.AiError | ProviderError => exchanges.get(error) ?? error;

const original = (cause: unknown): AiError.AiError | undefined => {
  if (AiError.isAiError(cause)) return cause;
  return typeof cause === "object" && cause !== null ? made.get(cause) : undefined;
};

/**
 * Picks the reason that fits a failure. The reason of an ended run must not invite another identical request, because the run
 * has just decided that this is not safe. Its transport failures are therefore `UnknownError`.
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
      return rejection(failure, description);
    case "protocol":
    case "truncated":
      return end === "run"
        ? new AiError.UnknownError({ description })
        : new AiError.InvalidResponseError({ description });
    case "transport":
    case "stalled":
      return end === "run" ? new AiError.UnknownError({ description }) : network(description, cause);
    case "invalid_tool_input":
      return new AiError.InvalidOutputError({ description });
    default:
      return new AiError.UnknownError({ description });
  }
};

const rejection = (
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

/** Omits the address, because it may hold a key. */
const network = (description: string, cause: unknown): AiError.AiErrorReason =>
  new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "", description, cause });

/** Maximum text of a provider's error in a description, in UTF-16 code units. */
const wordsCharactersMax = 2_000;

/** Returns the provider's own words if its response was an error. A person needs them, as with any provider package. */
const wordsOf = (cause: unknown): string | undefined => {
  const body = typeof cause === "object" && cause !== null && "body" in cause ? cause.body : undefined;
  return typeof body === "string" && body !== "" ? body.slice(0, wordsCharactersMax) : undefined;
};
