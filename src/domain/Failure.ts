/**
 * Says what went wrong with an attempt, never what to do about it.
 *
 * A failure is a value: it travels as JSON in snake_case, is stored in incidents and is all that the policy sees of an
 * error. `retryable`, `not_processed` and `in_band` may be left out; `resolve` then says them from the table below.
 */
import * as Schema from "effect/Schema";
import { Label, Milliseconds, Status } from "./Limits.ts";

/** The clock that ran out. Defaults and meaning: README, "Clocks". */
export const ClockName = Schema.Literals(["connect", "first_progress", "idle", "silence", "attempt", "run"]);
export type ClockName = typeof ClockName.Type;

/** The part of a request during which a transport failed. */
export const TransportOperation = Schema.Literals(["connect", "write", "head", "body"]);
export type TransportOperation = typeof TransportOperation.Type;

/** Why a provider refused a request. */
export const RejectedReason = Schema.Literals([
  "auth",
  "permission",
  "quota",
  "invalid_request",
  "context_overflow",
  "payload_too_large",
  "content_policy",
  "not_found",
]);
export type RejectedReason = typeof RejectedReason.Type;

/** Who cancelled. `provider` is an abort that nobody on this side asked for. */
export const CancelledBy = Schema.Literals(["user", "lifecycle", "caller", "provider"]);
export type CancelledBy = typeof CancelledBy.Type;

/**
 * A bounded, redacted trace of the original error: enough to group failures, never a message or a header value.
 * `name` is the error's class, `code` its machine-readable code, `depth` how deep in the cause chain it was found.
 */
export const Fingerprint = Schema.Struct({
  name: Label,
  code: Schema.optionalKey(Label),
  depth: Schema.Natural,
});
export type Fingerprint = typeof Fingerprint.Type;

const common = {
  /** Whether the same request may succeed when it is sent again. */
  retryable: Schema.optionalKey(Schema.Boolean),
  /** The provider says that it did nothing with the request. */
  not_processed: Schema.optionalKey(Schema.Boolean),
  /** The failure arrived in order, as an event of the stream: everything before it was seen. */
  in_band: Schema.optionalKey(Schema.Boolean),
  /** The provider's own wait, in milliseconds. */
  retry_after_ms: Schema.optionalKey(Milliseconds),
  status: Schema.optionalKey(Status),
  code: Schema.optionalKey(Label),
  fingerprint: Schema.optionalKey(Fingerprint),
} as const;

const kind = <const K extends string, F extends Schema.Struct.Fields>(name: K, fields: F) =>
  Schema.Struct({ kind: Schema.Literal(name), ...common, ...fields });

/** Every kind of failure, with the fields of its own. Kinds and defaults: DESIGN section 5, repeated in README. */
export const kinds = {
  /** The connection broke or could not be made. */
  transport: kind("transport", {
    operation: Schema.optionalKey(TransportOperation),
    http2_code: Schema.optionalKey(Label),
  }),
  /** The bytes ended cleanly before the provider's terminal marker. */
  truncated: kind("truncated", {}),
  /** A clock of ours ran out. */
  stalled: kind("stalled", { clock: ClockName }),
  rate_limited: kind("rate_limited", {}),
  overloaded: kind("overloaded", {}),
  server_error: kind("server_error", {}),
  /** The provider refused the request and will again. */
  rejected: kind("rejected", { reason: RejectedReason }),
  /** The bytes are not what the protocol says. */
  protocol: kind("protocol", { reason: Schema.Literals(["damaged_frame", "oversize", "not_a_stream"]) }),
  /** The model wrote a tool call that cannot be read. */
  invalid_tool_input: kind("invalid_tool_input", {}),
  /** A finish with nothing in it; raised only where configured. */
  empty: kind("empty", {}),
  cancelled: kind("cancelled", { by: CancelledBy }),
  /** Code of the caller failed: its observe, its tool, its consumer. */
  caller_failed: kind("caller_failed", {}),
  /** The process died during the attempt. */
  crashed: kind("crashed", {}),
  unknown: kind("unknown", {}),
} as const;

/** The name of a kind. */
export type FailureKind = keyof typeof kinds;

/** What went wrong: one of the kinds. */
export const Failure = Schema.Union(Object.values(kinds) as unknown as FailureMembers);
// `Object.values` loses the tuple; the union's type is rebuilt from the record so that both stay one list.
type FailureMembers = ReadonlyArray<(typeof kinds)[FailureKind]>;
/** A decoded failure; `resolve` fills in the flags that it leaves open. */
export type Failure = (typeof kinds)[FailureKind]["Type"];

/** A failure whose three flags are known. */
export type Resolved = Failure & {
  readonly retryable: boolean;
  readonly not_processed: boolean;
  readonly in_band: boolean;
};

/**
 * Fills in the flags that a failure leaves open.
 *
 * The defaults are those of the kind when neither code, status nor headers said otherwise: 501 and 505 are not retryable
 * (RFC 9110, 15.6: the server does not know the method or the version), 503 is not processed, REFUSED_STREAM is not
 * processed (RFC 9113, 8.7), `attempt` and `run` clocks are the caller's own limits and not retried.
 */
export const resolve = (failure: Failure): Resolved => ({
  ...failure,
  retryable: failure.retryable ?? defaultRetryable(failure),
  not_processed: failure.not_processed ?? defaultNotProcessed(failure),
  in_band: failure.in_band ?? false,
});

const defaultRetryable = (failure: Failure): boolean => {
  switch (failure.kind) {
    case "transport":
    case "truncated":
    case "rate_limited":
    case "overloaded":
    case "invalid_tool_input":
    case "empty":
    case "crashed":
      return true;
    case "stalled":
      return failure.clock !== "attempt" && failure.clock !== "run";
    case "server_error":
      return failure.status !== 501 && failure.status !== 505;
    case "protocol":
      return failure.reason !== "oversize";
    case "cancelled":
      return failure.by === "provider";
    case "rejected":
    case "caller_failed":
    case "unknown":
      return false;
  }
};

const defaultNotProcessed = (failure: Failure): boolean => {
  switch (failure.kind) {
    case "rate_limited":
    case "overloaded":
    case "rejected":
      return true;
    case "server_error":
      return failure.status === 503;
    case "transport":
      return failure.http2_code === "REFUSED_STREAM";
    default:
      return false;
  }
};
