/**
 * Contains the nineteen rows of the default policy, in evaluation order.
 *
 * `stream-recovery policy` prints these rows, and `decide` evaluates them. To change a rule, change its row. If a stored incident is then
 * decided differently, also raise `version` in RecoveryPolicy.ts (law L9).
 */
import type { Rule } from "../domain/Decision.ts";
import { shouldMove } from "./Moves.ts";
import { type Ruling, rulings } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/** One row: a condition and an action, as code and as the printed text. The first row that applies decides. */
export interface PolicyRow {
  /** Number of the row in tests, comments and docs/policy.md. */
  readonly number: number;
  /** Condition as the table prints it. */
  readonly condition: string;
  /** The action as the table prints it, or the mode of an automatic retry. */
  readonly action: string;
  readonly rules: ReadonlyArray<Rule>;
  /** Returns the ruling if the row applies. Pure. */
  readonly match: (s: Situation) => Ruling | undefined;
}

/** Builds a row that always gives the same rule. */
export const rowOf = (number: number, rule: Rule, condition: string, test: (s: Situation) => boolean): PolicyRow => {
  const ruling = rulings[rule];
  const action = ruling.action === "auto_retry_once" ? ruling.mode : ruling.action;
  return { number, condition, action, rules: [rule], match: (s) => (test(s) ? ruling : undefined) };
};

/** Rows 1 to 7, which no fact about tools or text can change. */
export const endRows: ReadonlyArray<PolicyRow> = [
  rowOf(
    1,
    "already_complete",
    "terminal seen, failure none of `invalid_tool_input`, `empty`, `refused`, `model_length`",
    (s) => s.facts.terminal_seen && !s.malformed,
  ),
  rowOf(2, "user_cancelled", "user cancelled", (s) => s.run.user_cancelled || isCancelledBy(s, "user")),
  rowOf(3, "lifecycle_closed", "lifecycle closed", (s) => s.run.lifecycle_closed || isCancelledBy(s, "lifecycle")),
  rowOf(4, "caller_interrupted", "cancelled by the caller with an unsigned interrupt", (s) =>
    isCancelledBy(s, "caller"),
  ),
  rowOf(5, "unknown_failure", "failure `unknown`", (s) => s.failure.kind === "unknown"),
  rowOf(
    6,
    "recovery_refused",
    "failure not retryable in an attempt of mode continue, except a `rejected.auth` that passes row 7",
    (s) => !s.resolved.retryable && s.run.mode === "continue" && !s.credentials,
  ),
  rowOf(
    7,
    "not_retryable",
    "failure not retryable. Exceptions: a `rejected.auth` passes once if credentials can be refreshed and were not; a failure that moves to the next route is replayed there",
    (s) => !s.resolved.retryable && !s.credentials && !shouldMove(s),
  ),
];

/** Rows 8 to 19, which decide what may be repeated, resumed or continued. */
const recoveryRows: ReadonlyArray<PolicyRow> = [
  rowOf(
    8,
    "tool_outcome_unknown",
    "a runtime call with an unknown outcome, not read_only",
    (s) => s.ledger.outcomeUnknown,
  ),
  rowOf(
    9,
    "resume_cursor",
    "a cursor is held; failure is transport, truncated, stalled, protocol, crashed or the provider's own cancel",
    (s) => s.run.resumable && isCutOff(s),
  ),
  rowOf(
    10,
    "already_complete",
    "`invalid_tool_input` or `empty`, terminal seen and a runtime call settled",
    (s) => s.malformed && s.facts.terminal_seen && s.ledger.settled,
  ),
  rowOf(11, "tool_outcome_unknown", "a runtime call dispatched, not read_only", (s) => s.ledger.dispatched),
  rowOf(
    12,
    "tool_call_handed_over",
    "not guarded; a runtime call handed over, not read_only",
    (s) => !s.guarded && s.ledger.handedOver,
  ),
  rowOf(
    13,
    "tool_input_shown",
    "not guarded; a part of a runtime call's input handed over, not read_only",
    (s) => !s.guarded && (s.ledger.inputStarted || s.ledger.inputComplete),
  ),
  rowOf(
    14,
    "provider_tool_activity",
    "a provider-executed call seen in any phase, not read_only",
    (s) => s.ledger.providerChanging,
  ),
  rowOf(
    15,
    "side_effects_unprovable",
    "the request offers provider-executed tools that are not read_only, or its tools are not known; it may have been sent; the failure is neither `not_processed` nor `in_band`",
    (s) => isUnprovable(s),
  ),
  rowOf(
    16,
    "tools_settled",
    "a runtime call settled, `can_continue`, and no text after it (`text_through` < `settled_through`) or `continue_text` auto",
    (s) =>
      s.ledger.settled &&
      s.run.can_continue &&
      (s.facts.text_through < s.facts.settled_through || s.run.continue_text === "auto"),
  ),
  rowOf(17, "tool_ran", "a runtime call that is not read_only settled", (s) => s.ledger.settledChanging),
  {
    number: 18,
    condition: "text shown",
    action:
      "continue if `can_continue` and either guarded with a call begun after the text (`text_through` < `call_through`) or `continue_text` is auto; else ask_user",
    rules: ["text_closed_by_call", "continue_text", "text_shown"],
    match: (s) => (s.shown === "text" ? rulingAfterText(s) : undefined),
  },
  {
    number: 19,
    condition: "otherwise",
    action: "replay",
    rules: [
      "credentials_refreshed",
      "not_sent",
      "not_processed",
      "tool_calls_fenced",
      "only_read_only_tools",
      "only_reasoning_shown",
      "nothing_shown",
    ],
    match: (s) => replayRuling(s),
  },
];

/** All rows of the default policy. The last one always applies. */
export const rows: ReadonlyArray<PolicyRow> = [...endRows, ...recoveryRows];

const isCancelledBy = (s: Situation, by: "user" | "lifecycle" | "caller"): boolean =>
  s.failure.kind === "cancelled" && s.failure.by === by;

/** True if the response was cut off, so that its rest may still be available. */
const isCutOff = (s: Situation): boolean => {
  switch (s.failure.kind) {
    case "transport":
    case "truncated":
    case "stalled":
    case "protocol":
    case "crashed":
      return true;
    case "cancelled":
      return s.failure.by === "provider";
    default:
      return false;
  }
};

/** True if the provider may have changed something without reporting it in the stream. */
const mayHaveUnseenChanges = ({ side_effects: exposed }: Situation["facts"]): boolean =>
  exposed === null || exposed.provider.mutating + exposed.provider.unknown > 0;

/** Returns true if the request may have caused a change at the provider that the stream did not report. */
export const isUnprovable = (s: Situation): boolean =>
  mayHaveUnseenChanges(s.facts) && s.facts.delivery !== "not_sent" && !s.notProcessed && !s.resolved.in_band;

const rulingAfterText = (s: Situation): Ruling => {
  if (!s.run.can_continue) return rulings.text_shown;
  if (s.guarded && s.facts.text_through < s.facts.call_through) return rulings.text_closed_by_call;
  return s.run.continue_text === "auto" ? rulings.continue_text : rulings.text_shown;
};

/** Returns the ruling for a replay: the first reason why it cannot duplicate anything. */
export const replayRuling = (s: Situation): Ruling => {
  if (s.credentials) return rulings.credentials_refreshed;
  if (s.facts.delivery === "not_sent") return rulings.not_sent;
  if (s.notProcessed) return rulings.not_processed;
  if (hasGuardedCall(s)) return rulings.tool_calls_fenced;
  if (s.ledger.any) return rulings.only_read_only_tools;
  return s.shown === "reasoning" ? rulings.only_reasoning_shown : rulings.nothing_shown;
};

const hasGuardedCall = (s: Situation): boolean =>
  s.guarded && (s.ledger.inputStarted || s.ledger.inputComplete || s.ledger.handedOver);
