/**
 * Holds the nineteen rows of the default policy, in the order in which they are asked.
 *
 * This is the table: `stream-recovery policy` prints these rows, and `decide` asks them. To change a rule change its row.
 */
import { type PolicyRow, retryIn, stopRow, type Verdict } from "./PolicyRow.ts";
import type { Situation } from "./Situation.ts";

const verdict = {
  resume: retryIn("resume", "resume_cursor"),
  toolsSettled: retryIn("continue", "tools_settled"),
  closedByCall: retryIn("continue", "text_closed_by_call"),
  continueText: retryIn("continue", "continue_text"),
  textShown: { action: "ask_user", rule: "text_shown" },
  credentials: retryIn("replay", "credentials_refreshed"),
  notSent: retryIn("replay", "not_sent"),
  notProcessed: retryIn("replay", "not_processed"),
  fenced: retryIn("replay", "tool_calls_fenced"),
  readOnly: retryIn("replay", "only_read_only_tools"),
  reasoning: retryIn("replay", "only_reasoning_shown"),
  nothing: retryIn("replay", "nothing_shown"),
} as const satisfies Record<string, Verdict>;

/** Rows 1 to 7: what no fact about tools or text can change. */
export const endRows: ReadonlyArray<PolicyRow> = [
  stopRow(
    1,
    "already_complete",
    "do_not_retry",
    "terminal seen, failure neither `invalid_tool_input` nor `empty`",
    (s) => s.facts.terminal_seen && !s.malformed,
  ),
  stopRow(2, "user_cancelled", "do_not_retry", "user cancelled", (s) => s.run.user_cancelled || cancelledBy(s, "user")),
  stopRow(
    3,
    "lifecycle_closed",
    "do_not_retry",
    "lifecycle closed",
    (s) => s.run.lifecycle_closed || cancelledBy(s, "lifecycle"),
  ),
  stopRow(4, "caller_interrupted", "do_not_retry", "cancelled by an unsigned caller", (s) => cancelledBy(s, "caller")),
  stopRow(5, "unknown_failure", "ask_user", "failure `unknown`", (s) => s.failure.kind === "unknown"),
  stopRow(
    6,
    "recovery_refused",
    "ask_user",
    "failure not retryable in an attempt of mode continue, and not an auth that passes as in row 7",
    (s) => !s.resolved.retryable && s.run.mode === "continue" && !s.credentials,
  ),
  stopRow(
    7,
    "not_retryable",
    "do_not_retry",
    "failure not retryable; `rejected.auth` passes once if credentials can be refreshed and were not",
    (s) => !s.resolved.retryable && !s.credentials,
  ),
];

/** Rows 8 to 19: what may be repeated, resumed or continued. */
const recoveryRows: ReadonlyArray<PolicyRow> = [
  stopRow(
    8,
    "tool_outcome_unknown",
    "ask_user",
    "a runtime call of unknown outcome, not read_only",
    (s) => s.ledger.outcomeUnknown,
  ),
  {
    number: 9,
    condition:
      "a cursor is held; failure is transport, truncated, stalled, protocol, crashed or the provider's own cancel",
    answer: "resume",
    rules: ["resume_cursor"],
    fits: (s) => (s.run.resumable && interrupted(s) ? verdict.resume : undefined),
  },
  stopRow(
    10,
    "already_complete",
    "do_not_retry",
    "`invalid_tool_input` or `empty`, terminal seen and a runtime call settled",
    (s) => s.malformed && s.facts.terminal_seen && s.ledger.settled,
  ),
  stopRow(
    11,
    "tool_outcome_unknown",
    "ask_user",
    "a runtime call dispatched, not read_only",
    (s) => s.ledger.dispatched,
  ),
  stopRow(
    12,
    "tool_call_handed_over",
    "ask_user",
    "not guarded; a runtime call handed over, not read_only",
    (s) => !s.guarded && s.ledger.handedOver,
  ),
  stopRow(
    13,
    "tool_input_shown",
    "ask_user",
    "not guarded; a part of a runtime call's input handed over, not read_only",
    (s) => !s.guarded && (s.ledger.inputStarted || s.ledger.inputComplete),
  ),
  stopRow(
    14,
    "provider_tool_activity",
    "ask_user",
    "a provider-executed call seen in any phase, not read_only",
    (s) => s.ledger.providerChanging,
  ),
  stopRow(
    15,
    "side_effects_unprovable",
    "ask_user",
    "provider-executed tools exposed that are not read_only, or snapshot missing; delivery ≠ not_sent; failure processed and not `in_band`",
    (s) => isUnprovable(s),
  ),
  {
    number: 16,
    condition:
      "a runtime call settled, `can_continue`, and no text after it (`text_through` < `settled_through`) or `continue_text` auto",
    answer: "continue",
    rules: ["tools_settled"],
    fits: (s) =>
      s.ledger.settled &&
      s.run.can_continue &&
      (s.facts.text_through < s.facts.settled_through || s.run.continue_text === "auto")
        ? verdict.toolsSettled
        : undefined,
  },
  stopRow(17, "tool_ran", "ask_user", "a runtime call settled that is not read_only", (s) => s.ledger.settledChanging),
  {
    number: 18,
    condition: "text shown",
    answer:
      "continue if `can_continue` and either guarded with a call begun after the text (`text_through` < `call_through`) or `continue_text` is auto; else ask_user",
    rules: ["text_closed_by_call", "continue_text", "text_shown"],
    fits: (s) => (s.shown === "text" ? afterText(s) : undefined),
  },
  {
    number: 19,
    condition: "otherwise",
    answer: "replay",
    rules: [
      "credentials_refreshed",
      "not_sent",
      "not_processed",
      "tool_calls_fenced",
      "only_read_only_tools",
      "only_reasoning_shown",
      "nothing_shown",
    ],
    fits: (s) => replayed(s),
  },
];

/** All rows of the default policy. The last one always fits. */
export const rows: ReadonlyArray<PolicyRow> = [...endRows, ...recoveryRows];

const cancelledBy = (s: Situation, by: "user" | "lifecycle" | "caller"): boolean =>
  s.failure.kind === "cancelled" && s.failure.by === by;

/** The response was cut off, so that its rest may still be had. */
const interrupted = (s: Situation): boolean => {
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

/** Whether the provider may have changed something that no part of the stream told of. */
const changesUnseen = ({ side_effects: exposed }: Situation["facts"]): boolean =>
  exposed === null || exposed.provider.mutating + exposed.provider.unknown > 0;

/** Whether the request got so far that the provider may have changed something unseen. */
export const isUnprovable = (s: Situation): boolean =>
  changesUnseen(s.facts) && s.facts.delivery !== "not_sent" && !s.notProcessed && !s.resolved.in_band;

const afterText = (s: Situation): Verdict => {
  if (!s.run.can_continue) return verdict.textShown;
  if (s.guarded && s.facts.text_through < s.facts.call_through) return verdict.closedByCall;
  return s.run.continue_text === "auto" ? verdict.continueText : verdict.textShown;
};

/** The first reason that fits: why nothing can be duplicated. */
export const replayed = (s: Situation): Verdict => {
  if (s.credentials) return verdict.credentials;
  if (s.facts.delivery === "not_sent") return verdict.notSent;
  if (s.notProcessed) return verdict.notProcessed;
  if (openChanging(s)) return verdict.fenced;
  if (s.ledger.any) return verdict.readOnly;
  return s.shown === "reasoning" ? verdict.reasoning : verdict.nothing;
};

const openChanging = (s: Situation): boolean =>
  s.guarded && (s.ledger.inputStarted || s.ledger.inputComplete || s.ledger.handedOver);
