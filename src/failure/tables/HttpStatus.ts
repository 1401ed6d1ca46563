/**
 * Maps an HTTP status to its meaning for the request that got it.
 */
import { permanentStatuses, type RejectedReason } from "../../domain/Failure.ts";

/** Meaning of a status: a failure kind and, for a rejection, its reason. */
export type StatusFailure =
  | { readonly kind: "rate_limited" | "overloaded" | "server_error" | "invalid_tool_input" | "unknown" }
  | { readonly kind: "rejected"; readonly reason: RejectedReason }
  | { readonly kind: "cancelled"; readonly by: "provider" };

const rejectFor = (reason: RejectedReason): StatusFailure => ({ kind: "rejected", reason });

/** Statuses with a meaning of their own. Every other 4xx is an invalid request, every other 5xx a server error. */
const failures: ReadonlyMap<number, StatusFailure> = new Map<number, StatusFailure>([
  [401, rejectFor("auth")],
  [402, rejectFor("quota")], // DeepSeek, OpenRouter, Anthropic billing_error: an unpaid bill, not a lost connection
  [403, rejectFor("permission")],
  [404, rejectFor("not_found")],
  [407, rejectFor("permission")], // the proxy's credentials, which a provider login cannot refresh
  [408, { kind: "server_error" }], // RFC 9110, 15.5.9: the client may repeat the request
  [409, { kind: "server_error" }], // the OpenAI and Anthropic SDKs retry it as a lock timeout
  [410, rejectFor("not_found")],
  [413, rejectFor("payload_too_large")],
  [425, { kind: "server_error" }], // RFC 8470, 5.2: retry without early data
  [429, { kind: "rate_limited" }],
  [451, rejectFor("permission")],
  [499, { kind: "cancelled", by: "provider" }], // google.rpc CANCELLED: the provider's own cancel, which this side did not request
  [529, { kind: "overloaded" }], // Anthropic overloaded_error
]);

/** Statuses that a proxy may send in place of the provider. The provider may then have processed the request. */
const proxied: ReadonlySet<number> = new Set([503, 529]);

/** Returns true for the status of an error response. */
export const isError = (status: unknown): status is number =>
  typeof status === "number" && Number.isInteger(status) && status >= 400 && status <= 599;

/** Returns the meaning of an error status by itself. */
export const failureOf = (status: number): StatusFailure =>
  failures.get(status) ?? (status >= 500 ? { kind: "server_error" } : rejectFor("invalid_request"));

/** Returns false if the same request cannot succeed later; undefined if the kind's default applies. */
export const canRetryStatus = (status: number): boolean | undefined =>
  permanentStatuses.has(status) ? false : undefined;

/**
 * Returns true if an error response proves that nothing was processed. A status that proxies send too, or a page, proves it only with the
 * provider's error schema.
 *
 * @param status an error status
 * @param body the form of the body: the provider's error schema, other JSON, other text, or nothing
 */
export const isBelievable = (status: number, body: "schema" | "json" | "text" | "absent"): boolean => {
  if (body === "schema") return true;
  return !proxied.has(status) && body !== "text";
};
