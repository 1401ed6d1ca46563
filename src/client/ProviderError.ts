/**
 * Carries the failure of one attempt out of the client, with the original error as its cause.
 */
import { Schema } from "effect";
import { Delivery } from "../domain/AttemptFacts.ts";
import { Failure } from "../domain/Failure.ts";

/**
 * The error of a provider's stream. `reason` is the classified failure, and `delivery` the progress of the request. `cause` is the original
 * error unchanged: Node's or undici's error, a `ProviderResponse`, or the JSON of the event that carried it. The message is built only from
 * `reason`, so it contains no header, no address and no content.
 */
export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  reason: Failure,
  delivery: Delivery,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect()),
}) {}

/** A response that was not a stream. Its body is cut at `errorBodyBytesMax` bytes. */
export interface ProviderResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as text, at most `errorBodyBytesMax` bytes. */
  readonly body: string;
}

/**
 * Creates the error of a failure.
 *
 * @param reason the classified failure
 * @param delivery the progress of the request
 * @param cause the original error, if there is one
 */
export const providerError = (reason: Failure, delivery: Delivery, cause?: unknown): ProviderError =>
  new ProviderError({ reason, delivery, message: describe(reason), ...(cause === undefined ? {} : { cause }) });

const describe = (failure: Failure): string => {
  const details = [
    failure.status === undefined ? undefined : `status ${failure.status}`,
    failure.code,
    "reason" in failure ? failure.reason : undefined,
    "operation" in failure ? failure.operation : undefined,
    "clock" in failure ? failure.clock : undefined,
  ].filter((detail) => detail !== undefined);
  return `The provider's stream failed: ${failure.kind}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
};
