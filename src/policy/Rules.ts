/**
 * Describes each rule in one table: its action, its reasons, and its sentence for a person.
 *
 * A name in `Rule` does not compile without an entry here. Decisions, reasons, sentences, questions, stricter configurations and the ends
 * of runs come from this table. The conditions and their order are in PolicyRows.ts and RetryBudget.ts.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Rule } from "../domain/Decision.ts";
import { type Failure, isMalformed } from "../domain/Failure.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import { hasCutCall } from "./CutCalls.ts";
import type { Situation } from "./Situation.ts";

/** Parts of a sentence: kinds and counts, never a name or text from outside. */
export interface SentenceParts {
  readonly failure: Failure;
  readonly facts: AttemptFacts;
  readonly because: ReadonlyArray<string>;
  /**
   * Returns a sentence that says whether a tool ran. It is a function because only some sentences need the ledger, and a caller may not
   * have a ledger.
   */
  readonly tools: () => string;
}

interface Said {
  /**
   * Facts that forced the rule, in addition to the failure. They have the form `name=value` with fixed names and values, so they are safe
   * to store and export.
   */
  readonly because: (s: Situation) => ReadonlyArray<string>;
  /** Sentence that follows the description of the failure. It says whether a tool ran and what is safe to do. */
  readonly sentence: string | ((parts: SentenceParts) => string);
}

interface RetryRule extends Said {
  readonly action: "auto_retry_once";
  readonly mode: "resume" | "continue";
}

interface ReplayRule extends Said {
  readonly action: "auto_retry_once";
  readonly mode: "replay";
  /** The replay rule that applies once an attempt's facts have grown. Tightening this rule also tightens that one (law L2). */
  readonly growsInto: Rule | undefined;
}

interface QuestionRule extends Said {
  readonly action: "ask_user";
  /** `whether_it_ran` offers `it_ran` and `it_did_not_run`, and the tool's own `verify` may answer it. */
  readonly asks: "what_next" | "whether_it_ran";
}

interface StopRule extends Said {
  readonly action: "do_not_retry";
  /** End of the run: complete, stopped, or left by its caller, so that another process may take it over. */
  readonly run: "completed" | "stopped" | "left";
}

/** Entry of one rule. */
export type RuleEntry = RetryRule | ReplayRule | QuestionRule | StopRule;

/** Reason that marks token counts as estimates. */
const estimated = "tokens=estimated";

/** The table, in the order of `Rule`. */
export const rules = {
  already_complete: {
    action: "do_not_retry",
    run: "completed",
    because: () => ["terminal_seen=true"],
    sentence: ({ failure, tools }) =>
      isMalformed(failure)
        ? `the answer ended and is kept as it is. ${tools()}`
        : "the answer is complete, so nothing is repeated.",
  },
  user_cancelled: {
    action: "do_not_retry",
    run: "stopped",
    because: ({ run }) => [`user_cancelled=${run.user_cancelled}`],
    sentence: "the run stays stopped because the user cancelled it.",
  },
  lifecycle_closed: {
    action: "do_not_retry",
    run: "stopped",
    because: ({ run }) => [`lifecycle_closed=${run.lifecycle_closed}`],
    sentence: "the run stays stopped because the session was closed.",
  },
  caller_interrupted: {
    action: "do_not_retry",
    run: "left",
    because: () => [],
    sentence: "the run stops here. If its request is on record, it can continue later.",
  },
  unknown_failure: {
    action: "ask_user",
    asks: "what_next",
    because: () => [],
    sentence: ({ tools }) => `we cannot tell whether a retry is safe. ${tools()}`,
  },
  recovery_refused: {
    action: "ask_user",
    asks: "what_next",
    because: ({ run }) => ["retryable=false", `mode=${run.mode}`],
    sentence: ({ failure }) =>
      failure.kind === "protocol" && failure.reason === "seam_unproven"
        ? "none of the unproven text was shown. The text shown before it is kept."
        : "the continuation failed, and the same request would fail again. Everything settled before it is kept.",
  },
  not_retryable: {
    action: "do_not_retry",
    run: "stopped",
    because: () => ["retryable=false"],
    sentence: "the same request would fail again.",
  },
  tool_outcome_unknown: {
    action: "ask_user",
    asks: "whether_it_ran",
    because: ({ ledger }) => [`runtime_call=${ledger.outcomeUnknown ? "outcome_unknown" : "dispatched"}`],
    sentence: "a tool had started and its outcome is not known. Check what it did before you repeat or continue.",
  },
  resume_cursor: {
    action: "auto_retry_once",
    mode: "resume",
    because: () => ["resumable=true"],
    sentence: "the same answer resumes where it broke. Nothing is repeated.",
  },
  tool_call_handed_over: {
    action: "ask_user",
    asks: "what_next",
    because: ({ guarded }) => [`guarded=${guarded}`, "runtime_call=handed_over"],
    sentence:
      "a complete tool call had been handed over, and we cannot prove that it did not run. Check before you repeat.",
  },
  tool_input_shown: {
    action: "ask_user",
    asks: "what_next",
    because: ({ guarded, ledger }) => [
      `guarded=${guarded}`,
      `runtime_call=${ledger.inputComplete ? "input_complete" : "input_started"}`,
    ],
    sentence:
      "part of a tool call had been handed over, and we cannot prove that it did not run. Check before you repeat.",
  },
  provider_tool_activity: {
    action: "ask_user",
    asks: "what_next",
    because: () => ["provider_call=seen"],
    sentence: "the provider had started one of its own tools, which may change something. Check before you repeat.",
  },
  side_effects_unprovable: {
    action: "ask_user",
    asks: "what_next",
    because: ({ facts }) => [`side_effects=${facts.side_effects?.reason ?? "missing"}`, `delivery=${facts.delivery}`],
    sentence: "the provider may have run its own tools, and we cannot see whether it did. Check before you repeat.",
  },
  tools_settled: {
    action: "auto_retry_once",
    mode: "continue",
    because: (s) => callFacts(s),
    sentence: ({ facts }) =>
      hasCutCall(facts)
        ? "the answer continues from the results of the finished tools. A tool that changes nothing had not finished and may run again."
        : "the tools that ran are finished, and the answer continues from their results. No tool runs again.",
  },
  tool_ran: {
    action: "ask_user",
    asks: "what_next",
    because: (s) => callFacts(s),
    sentence: "a tool that may change something has already run. Repeating could run it again.",
  },
  text_closed_by_call: {
    action: "auto_retry_once",
    mode: "continue",
    because: (s) => textFacts(s),
    sentence: ({ facts }) =>
      hasCutCall(facts)
        ? "the shown text was finished, and the answer continues after it. A tool that changes nothing had not finished and may run again."
        : "the shown text was finished, and the answer continues after it. Nothing is repeated.",
  },
  continue_text: {
    action: "auto_retry_once",
    mode: "continue",
    because: (s) => textFacts(s),
    sentence: "the answer continues after the shown text.",
  },
  text_shown: {
    action: "ask_user",
    asks: "what_next",
    because: (s) => textFacts(s),
    sentence: ({ facts, tools }) => {
      if (facts.shown === "nothing") return `the answer had begun. ${tools()} Repeating gives a new answer.`;
      const shown =
        facts.shown === "reasoning" ? "the model's reasoning, but none of its answer," : "part of the answer";
      return `${shown} had been shown. ${tools()} Repeating gives a new answer in its place.`;
    },
  },
  credentials_refreshed: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: undefined,
    because: () => ["can_refresh_credentials=true", "credential_refreshes=0"],
    sentence: "the request is sent again with fresh credentials.",
  },
  not_sent: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: "not_processed",
    because: () => ["delivery=not_sent"],
    sentence: "no part of the request had been sent, so a retry is safe.",
  },
  not_processed: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: "nothing_shown",
    because: ({ facts }) => ["not_processed=true", `progress=${facts.progress}`],
    sentence: "the provider did not process the request, so a retry is safe.",
  },
  tool_calls_fenced: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: undefined,
    because: ({ facts }) => ["guarded=true", "dispatched=none", `shown=${facts.shown}`],
    sentence:
      "no tool call that may change something had run, and no call of this answer can still run, so a retry is safe.",
  },
  only_read_only_tools: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: "tool_calls_fenced",
    because: ({ facts }) => ["calls=read_only", `shown=${facts.shown}`],
    sentence: "only tools that change nothing were called, so a retry is safe.",
  },
  only_reasoning_shown: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: "only_read_only_tools",
    because: ({ facts }) => [`shown=${facts.shown}`, "calls=none"],
    sentence: "only reasoning had been shown and no tool was called, so a retry is safe.",
  },
  nothing_shown: {
    action: "auto_retry_once",
    mode: "replay",
    growsInto: "only_reasoning_shown",
    because: ({ facts }) => [`shown=${facts.shown}`, "calls=none"],
    sentence: "nothing had been shown and no tool was called, so a retry is safe.",
  },
  outage_too_long: {
    action: "ask_user",
    asks: "what_next",
    because: ({ budget, run }) => [
      `path=${run.path}`,
      `waited_ms=${run.waited_ms}`,
      `cooldown_ms=${run.cooldown_ms}`,
      `max_outage_ms=${budget.max_outage_ms}`,
    ],
    sentence: ({ tools }) => `the provider was unreachable, or asked us to wait, for longer than allowed. ${tools()}`,
  },
  retry_after_too_long: {
    action: "ask_user",
    asks: "what_next",
    because: ({ budget, failure, run }) => [
      ...(failure.retry_after_ms === undefined ? [] : [`retry_after_ms=${failure.retry_after_ms}`]),
      ...(run.cooldown_ms === 0 ? [] : [`cooldown_ms=${run.cooldown_ms}`]),
      `max_retry_after_ms=${budget.max_retry_after_ms}`,
    ],
    sentence: ({ tools }) => `the provider asks for a longer wait than is allowed without a question. ${tools()}`,
  },
  throttled: {
    action: "ask_user",
    asks: "what_next",
    because: ({ budget, run }) => [
      `throttle_wait_ms=${run.throttle_wait_ms}`,
      `max_retry_after_ms=${budget.max_retry_after_ms}`,
    ],
    sentence: ({ tools }) => `too many retries are in flight at this provider. ${tools()} Retry later.`,
  },
  token_budget: {
    action: "ask_user",
    asks: "what_next",
    because: ({ budget, run }) => [
      `wasted_tokens=${run.wasted_tokens}`,
      `next_tokens=${run.next_tokens}`,
      ...(budget.max_wasted_tokens === undefined ? [] : [`max_wasted_tokens=${budget.max_wasted_tokens}`]),
      `group_wasted_tokens=${run.group_wasted_tokens}`,
      ...(budget.max_group_wasted_tokens === undefined
        ? []
        : [`max_group_wasted_tokens=${budget.max_group_wasted_tokens}`]),
      ...(run.tokens_estimated ? [estimated] : []),
    ],
    sentence: ({ because, tools }) =>
      `another attempt would exceed the token limit for broken attempts. ${
        because.includes(estimated)
          ? "The count is an estimate because the provider did not report all of it."
          : "The count is the provider's own."
      } ${tools()}`,
  },
  budget_exhausted: {
    action: "ask_user",
    asks: "what_next",
    because: ({ budget, run }) => [
      `auto_retries=${run.auto_retries}`,
      `not_processed_retries=${run.not_processed_retries}`,
      `retries_after_shown=${run.retries_after_shown}`,
      `retries_after_stall=${run.retries_after_stall}`,
      ...(run.retries_after_empty === 0 ? [] : [`retries_after_empty=${run.retries_after_empty}`]),
      ...(run.same_partial ? ["same_partial=true"] : []),
      `elapsed_ms=${run.elapsed_ms}`,
      ...(budget.max_group_retries === undefined ? [] : [`group_retries=${run.group_retries}`]),
    ],
    sentence: ({ because, tools }) =>
      because.includes("same_partial=true")
        ? `the answer broke twice at the same place, and would break there again. ${tools()}`
        : `the retry budget is used up. ${tools()}`,
  },
} as const satisfies { readonly [R in Rule]: RuleEntry };

type Entries = typeof rules;

/** A rule that asks a person. */
export type AskingRule = { [R in Rule]: Entries[R]["action"] extends "ask_user" ? R : never }[Rule];

/** Result of a row before budget and Retry-After are checked: a rule, with its action from the table. */
export type Ruling = { readonly rule: Rule; readonly entry: RuleEntry } & (
  | { readonly action: "auto_retry_once"; readonly mode: Exclude<AttemptMode, "first"> }
  | { readonly action: "ask_user" | "do_not_retry" }
);

const rulingOf = (rule: Rule): Ruling => {
  const entry: RuleEntry = rules[rule];
  return entry.action === "auto_retry_once"
    ? { rule, entry, action: entry.action, mode: entry.mode }
    : { rule, entry, action: entry.action };
};

// `Object.keys` loses the literal keys of the table, and `fromEntries` those of the record.
const names = Object.keys(rules) as ReadonlyArray<Rule>;

/** Ruling of each rule, built once, because a decision should take only about a microsecond. */
export const rulings = Object.fromEntries(names.map((rule) => [rule, rulingOf(rule)])) as {
  readonly [R in Rule]: Ruling;
};

/**
 * Returns the state in which a run ends after a rule stopped it. If the configuration turned the rule into a stop, the run ends as stopped.
 */
export const runStateAfter = (rule: Rule): StopRule["run"] => {
  const entry: RuleEntry = rules[rule];
  return entry.action === "do_not_retry" ? entry.run : "stopped";
};

/** Returns true if the rule's question is about a call of unknown outcome. */
export const isOutcomeQuestion = (rule: Rule): boolean => isAboutOutcome(rules[rule]);

/** Returns true if the entry's question is about a call of unknown outcome. */
export const isAboutOutcome = (entry: RuleEntry): boolean =>
  entry.action === "ask_user" && entry.asks === "whether_it_ran";

const callFacts = ({ facts }: Situation): ReadonlyArray<string> => [
  "runtime_call=settled",
  `text_through=${facts.text_through}`,
  `settled_through=${facts.settled_through}`,
];

const textFacts = ({ facts }: Situation): ReadonlyArray<string> => [
  `shown=${facts.shown}`,
  `text_through=${facts.text_through}`,
  `call_through=${facts.call_through}`,
];
