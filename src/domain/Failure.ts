/**
 * Says what went wrong with an attempt, never what to do about it.
 *
 * A failure is a value: it travels as JSON in snake_case, is stored in incidents and is all that the policy sees of an
 * error. `retryable`, `not_processed` and `in_band` may be left out; `resolve` then says them from the table below.
 */
import * as Schema from "effect/Schema";
import * as Http2Errors from "./Http2Errors.ts";
import { Label, Milliseconds, Status } from "./Limits.ts";
import * as TransportCodes from "./TransportCodes.ts";
import { TransportOperation } from "./TransportCodes.ts";

export { TransportOperation } from "./TransportCodes.ts";

/** The clock that ran out. Defaults and meaning: docs/clocks.md. */
export const ClockName = Schema.Literals(["connect", "first_progress", "idle", "silence", "attempt", "run"]);
export type ClockName = typeof ClockName.Type;

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

/** The side that cancelled. `provider` is an abort that this side did not ask for. */
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
  /** With `retry_after_ms`: the wait is about this request alone (its own size), and holds no other. */
  only_this: Schema.optionalKey(Schema.Boolean),
  status: Schema.optionalKey(Status),
  code: Schema.optionalKey(Label),
  fingerprint: Schema.optionalKey(Fingerprint),
} as const;

const kind = <const K extends string, F extends Schema.Struct.Fields>(name: K, fields: F) =>
  Schema.Struct({ kind: Schema.Literal(name), ...common, ...fields });

/** Every kind of failure, with the fields of its own. `resolve` has the flags that each kind has by default. */
export const kinds = {
  /** The connection broke or could not be made. */
  transport: kind("transport", {
    operation: Schema.optionalKey(TransportOperation),
    http2_code: Schema.optionalKey(Label),
    /** This process has reached the host before. A name lookup that fails is then the network's fault, and the name is right. */
    reached_host_before: Schema.optionalKey(Schema.Boolean),
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
  protocol: kind("protocol", {
    reason: Schema.Literals(["damaged_frame", "oversize", "not_a_stream", "seam_unproven"]),
  }),
  /** The model wrote a tool call that cannot be read. */
  invalid_tool_input: kind("invalid_tool_input", {}),
  /** A finish with nothing in it; raised only where configured. */
  empty: kind("empty", {}),
  /** The model ended by refusing to answer (a content-policy finish); raised only where configured. */
  refused: kind("refused", {}),
  /** The answer ended at the model's own limit of length; raised only where configured. */
  model_length: kind("model_length", {}),
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

/** The three flags of a failure, all known. */
export interface Flags {
  readonly retryable: boolean;
  readonly not_processed: boolean;
  readonly in_band: boolean;
}

/** A failure whose three flags are known. */
export type Resolved = Failure & Flags;

/** A kind's failure, as the record of kinds gives it. */
type Of<K extends FailureKind> = Extract<Failure, { readonly kind: K }>;

/**
 * 5xx that the same request meets again: RFC 9110 (501 method, 505 version not known), RFC 2295 (506), RFC 5842 (508), RFC 2774
 * (510), RFC 6585 (511, a captive portal), Cloudflare's 525 and 526 (TLS to the origin).
 */
export const permanentStatuses: ReadonlySet<number> = new Set([501, 505, 506, 508, 510, 511, 525, 526]);

/**
 * Whether a failure is about what the model wrote, not about the stream. The stream is then whole: the provider has said all
 * that it will, and its terminal marker counts beside the failure.
 */
export const isMalformed = ({ kind }: Failure): boolean =>
  kind === "invalid_tool_input" || kind === "empty" || isFinish({ kind });

/** Whether a failure is a finish that is one only where configured: the same request would end so again, another route may not. */
export const isFinish = ({ kind }: Pick<Failure, "kind">): boolean => kind === "refused" || kind === "model_length";

/** The code of an `invalid_tool_input` whose call stands in the response with arguments that cannot be read. */
export const incompleteCall = "incomplete_call";

/** Its code if the request's own limit of output tokens cut the call: the same request would meet that limit again. */
export const outputLimit = "output_limit";

/** Recognises a failure that leaves a call in the response which must not run. */
export const leavesIncompleteCall = ({ code, kind }: Pick<Failure, "code" | "kind">): boolean =>
  kind === "invalid_tool_input" && (code === incompleteCall || code === outputLimit);

/**
 * Fills in the flags that a failure leaves open.
 *
 * A code, an HTTP/2 code and a status are judged by the tables that the classifier reads. A flag that they leave open has the
 * kind's default: 503 is not processed, REFUSED_STREAM is not processed (RFC 9113, 8.7), `attempt` and `run` clocks are
 * the caller's own limits and not retried. A kind or a flag that this version does not know is never retried.
 */
export const resolve = (failure: Failure): Resolved => ({ ...failure, ...flags(failure) });

/**
 * The three flags of a failure, as `resolve` fills them in. A flag that is no boolean (a slip of plain JavaScript) permits nothing.
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

/** Clocks whose end is the provider's fault. The other two are the caller's own limits. */
const retriedClocks: ReadonlySet<string> = new Set<ClockName>(["connect", "first_progress", "idle", "silence"]);

/** How HTTP/2 ended says more than the code of the error around it, as for the classifier. */
const transportRetryable = ({ code, http2_code, reached_host_before }: Of<"transport">): boolean => {
  if (http2_code !== undefined) return Http2Errors.survivable(http2_code);
  if (code === undefined) return true;
  if (Http2Errors.isNodeCode(code)) return Http2Errors.ofNodeCode(code).retryable;
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
    ? code !== undefined && Http2Errors.isNodeCode(code) && Http2Errors.ofNodeCode(code).not_processed === true
    : Http2Errors.nameOf(http2_code) === "REFUSED_STREAM";
