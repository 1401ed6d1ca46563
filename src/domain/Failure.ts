/**
 * Describes what went wrong with an attempt, never what to do about it.
 *
 * A failure is a value that travels as JSON in snake_case and is stored in incidents. The policy sees nothing else of an error.
 * `retryable`, `not_processed` and `in_band` may be omitted; `resolve` then fills them in from the defaults below.
 */
import * as Schema from "effect/Schema";
import * as Http2Errors from "./Http2Errors.ts";
import { Label, Milliseconds, Status } from "./Limits.ts";
import * as TransportCodes from "./TransportCodes.ts";
import { TransportOperation } from "./TransportCodes.ts";

export { TransportOperation } from "./TransportCodes.ts";

/** The clock that ran out. See docs/stream-processor.md for defaults and meaning. */
export const ClockName = Schema.Literals(["connect", "first_progress", "idle", "silence", "attempt", "run"]);
export type ClockName = typeof ClockName.Type;

/** Reason that a provider rejected a request. */
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

/** The side that cancelled. `provider` means an abort that this process did not request. */
export const CancelledBy = Schema.Literals(["user", "lifecycle", "caller", "provider"]);
export type CancelledBy = typeof CancelledBy.Type;

/**
 * A bounded, redacted trace of the original error. It suffices to group failures and never contains a message or a header value. `name` is
 * the error's class, `code` its machine-readable code, `depth` its depth in the cause chain.
 */
export const Fingerprint = Schema.Struct({
  name: Label,
  code: Schema.optionalKey(Label),
  depth: Schema.Natural,
});
export type Fingerprint = typeof Fingerprint.Type;

const common = {
  /** True if the same request may succeed when it is sent again. */
  retryable: Schema.optionalKey(Schema.Boolean),
  /** True if the provider says that it did nothing with the request. */
  not_processed: Schema.optionalKey(Schema.Boolean),
  /** True if the failure arrived as an event of the stream. Everything that the provider sent before it was then seen. */
  in_band: Schema.optionalKey(Schema.Boolean),
  /** Wait that the provider requested, in milliseconds. */
  retry_after_ms: Schema.optionalKey(Milliseconds),
  /** True if the wait of `retry_after_ms` applies to this request alone (for its own size) and to no other request. */
  only_this: Schema.optionalKey(Schema.Boolean),
  status: Schema.optionalKey(Status),
  code: Schema.optionalKey(Label),
  fingerprint: Schema.optionalKey(Fingerprint),
} as const;

const kind = <const K extends string, F extends Schema.Struct.Fields>(name: K, fields: F) =>
  Schema.Struct({ kind: Schema.Literal(name), ...common, ...fields });

/** Kinds of failure, each with its own fields. `resolve` has the default flags of each kind. */
export const kinds = {
  /** The connection broke or could not be established. */
  transport: kind("transport", {
    operation: Schema.optionalKey(TransportOperation),
    http2_code: Schema.optionalKey(Label),
    /** True if this process has reached the host before. The name is then known to be valid, so a failed lookup is the network's fault. */
    reached_host_before: Schema.optionalKey(Schema.Boolean),
  }),
  /** The bytes ended cleanly before the provider's terminal marker. */
  truncated: kind("truncated", {}),
  /** One of our clocks ran out. */
  stalled: kind("stalled", { clock: ClockName }),
  rate_limited: kind("rate_limited", {}),
  overloaded: kind("overloaded", {}),
  server_error: kind("server_error", {}),
  /** The provider rejected the request and will reject it again. */
  rejected: kind("rejected", { reason: RejectedReason }),
  /** The bytes do not follow the protocol. */
  protocol: kind("protocol", {
    reason: Schema.Literals(["damaged_frame", "oversize", "not_a_stream", "seam_unproven"]),
  }),
  /** The model wrote a tool call that cannot be read. */
  invalid_tool_input: kind("invalid_tool_input", {}),
  /** A finish without content; raised only if configured. */
  empty: kind("empty", {}),
  /** The model refused to answer (a content-policy finish); raised only if configured. */
  refused: kind("refused", {}),
  /** The answer ended at the model's own length limit; raised only if configured. */
  model_length: kind("model_length", {}),
  cancelled: kind("cancelled", { by: CancelledBy }),
  /** The caller's code failed: its observe, its tool or its consumer. */
  caller_failed: kind("caller_failed", {}),
  /** The process died during the attempt. */
  crashed: kind("crashed", {}),
  unknown: kind("unknown", {}),
} as const;

/** Name of a failure kind, for example `transport`. */
export type FailureKind = keyof typeof kinds;

/** Schema of a failure: one of the kinds. */
export const Failure = Schema.Union(Object.values(kinds) as unknown as FailureMembers);
// `Object.values` loses the tuple type. The union's type is built from the record, so that both stay the same list.
type FailureMembers = ReadonlyArray<(typeof kinds)[FailureKind]>;
/** A decoded failure. `resolve` fills in the omitted flags. */
export type Failure = (typeof kinds)[FailureKind]["Type"];

/** The three flags of a failure. Unlike in `Failure`, none is omitted. */
export interface Flags {
  readonly retryable: boolean;
  readonly not_processed: boolean;
  readonly in_band: boolean;
}

/** A failure with its three flags filled in. */
export type Resolved = Failure & Flags;

type Of<K extends FailureKind> = Extract<Failure, { readonly kind: K }>;

/**
 * 5xx statuses that the same request would get again: RFC 9110 (501 method, 505 unknown version), RFC 2295 (506), RFC 5842 (508), RFC 2774
 * (510), RFC 6585 (511, a captive portal), Cloudflare's 525 and 526 (TLS to the origin).
 */
export const permanentStatuses: ReadonlySet<number> = new Set([501, 505, 506, 508, 510, 511, 525, 526]);

/**
 * Returns true if a failure is about the model's output and not about the stream. The stream is then complete, so its terminal marker
 * counts despite the failure.
 */
export const isMalformed = ({ kind }: Failure): boolean =>
  kind === "invalid_tool_input" || kind === "empty" || isFinish({ kind });

/** Returns true for a finish that is a failure only if configured. The same request would end the same way, but another route may not. */
export const isFinish = ({ kind }: Pick<Failure, "kind">): boolean => kind === "refused" || kind === "model_length";

/** Code of an `invalid_tool_input` if the response contains the call but its arguments cannot be read. */
export const incompleteCall = "incomplete_call";

/**
 * Code of an `invalid_tool_input` if the request's own limit of output tokens cut the call. The same request would reach that limit again.
 */
export const outputLimit = "output_limit";

/** Returns true if a failure leaves a call in the response that must not run. */
export const leavesIncompleteCall = ({ code, kind }: Pick<Failure, "code" | "kind">): boolean =>
  kind === "invalid_tool_input" && (code === incompleteCall || code === outputLimit);

/**
 * Fills in the flags that a failure omits.
 *
 * Codes, HTTP/2 codes and statuses are judged by the tables that the classifier reads. A flag that they do not determine has the kind's
 * default. For example, 503 and REFUSED_STREAM (RFC 9113, 8.7) are not processed, and the `attempt` and `run` clocks are the caller's own
 * limits and not retried. A kind or a flag that this version does not know is never retried.
 */
export const resolve = (failure: Failure): Resolved => ({ ...failure, ...flags(failure) });

/**
 * Returns the three flags of a failure, as `resolve` fills them in. A flag that is not a boolean (from plain JavaScript) counts as false.
 */
export const flags = (failure: Failure): Flags => ({
  retryable: failure.retryable === undefined ? defaultRetryable(failure) : failure.retryable === true,
  not_processed: failure.not_processed === undefined ? defaultNotProcessed(failure) : failure.not_processed === true,
  in_band: failure.in_band === true,
});

const defaultRetryable = (failure: Failure): boolean => {
  switch (failure.kind) {
    case "transport":
      return transportRetryable(failure);
    case "truncated":
    case "rate_limited":
    case "overloaded":
    case "invalid_tool_input":
    case "empty":
    case "crashed":
      return true;
    case "stalled":
      return retriedClocks.has(failure.clock);
    case "server_error":
      return failure.status === undefined || !permanentStatuses.has(failure.status);
    case "protocol":
      return failure.reason === "damaged_frame" || failure.reason === "not_a_stream";
    case "cancelled":
      return failure.by === "provider";
    default:
      return false;
  }
};

/** Clocks that end an attempt because of the provider. The other two are the caller's own limits. */
const retriedClocks: ReadonlySet<string> = new Set<ClockName>(["connect", "first_progress", "idle", "silence"]);

/**
 * True if a transport failure may be retried. The HTTP/2 code takes precedence over the code of the error around it, as in the classifier.
 */
const transportRetryable = ({ code, http2_code, reached_host_before }: Of<"transport">): boolean => {
  if (http2_code !== undefined) return Http2Errors.isSurvivable(http2_code);
  if (code === undefined) return true;
  if (Http2Errors.isNodeCode(code)) return Http2Errors.fromNodeCode(code).retryable;
  switch (TransportCodes.lookup(code)?.meaning) {
    case "never":
    case "malformed":
    case "oversize":
      return false;
    case "dns":
      return reached_host_before === true;
    default:
      return true;
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
      return transportNotProcessed(failure);
    default:
      return false;
  }
};

const transportNotProcessed = ({ code, http2_code }: Of<"transport">): boolean =>
  http2_code === undefined
    ? code !== undefined && Http2Errors.isNodeCode(code) && Http2Errors.fromNodeCode(code).not_processed === true
    : Http2Errors.nameOf(http2_code) === "REFUSED_STREAM";
