/**
 * A script for every row of the strict policy, with its whole transcript.
 */
import { Effect } from "effect";
import * as S from "../Scripted.ts";
import { at, bash, hosted, malformed, type RuleCase, read, runId, runs, starts } from "./RuleBench.ts";

const { done, fail, reset, start, text } = S;

/** A row of the strict table by its number, and a case of it. */
export interface StrictCase extends RuleCase {
  readonly row: number;
}

const asks = (rule: string, ...before: ReadonlyArray<string>): ReadonlyArray<string> => [
  "attempt 1 first",
  ...before,
  `ask ${rule}`,
  "answer stop",
  `end stopped ${rule}`,
];

const retried = (rule: string, ...before: ReadonlyArray<string>): ReadonlyArray<string> => [
  "attempt 1 first",
  ...before,
  `retry replay ${rule}`,
  ...(before.length > 0 ? ["discard 1 after 0"] : []),
  "attempt 2 replay",
  "done",
  "completed",
];

const ends: ReadonlyArray<StrictCase> = [
  {
    row: 1,
    rule: "already_complete",
    when: "the marker was seen",
    attempts: [[text("hi"), done, reset]],
    lines: ["attempt 1 first", "hi", "done", "completed"],
  },
  {
    row: 2,
    rule: "user_cancelled",
    when: "the user cancelled",
    attempts: [[start, S.never]],
    play: ({ processor }) => ({ onEvent: at("start", processor.cancel(runId)) }),
    lines: ["attempt 1 first", "start", "end do_not_retry user_cancelled"],
  },
  {
    row: 3,
    rule: "lifecycle_closed",
    when: "the session was closed",
    attempts: [[start, S.never]],
    play: ({ processor }) => ({ onEvent: at("start", processor.close("shutdown")) }),
    lines: ["attempt 1 first", "start", "end do_not_retry lifecycle_closed"],
  },
  {
    row: 4,
    rule: "caller_interrupted",
    when: "an unsigned interrupt",
    attempts: [[start, S.never]],
    play: () => ({ onEvent: at("start", Effect.interrupt) }),
    lines: ["attempt 1 first", "start", "interrupted"],
  },
  {
    row: 5,
    rule: "unknown_failure",
    when: "an unknown failure",
    attempts: [[fail({ kind: "unknown" })]],
    lines: asks("unknown_failure"),
  },
  {
    row: 6,
    rule: "recovery_refused",
    when: "a continuation that a person chose is refused",
    attempts: [[text("hi"), S.wait(1), reset], [fail({ kind: "rejected", reason: "invalid_request" })]],
    answers: ["continue", "stop"],
    play: () => ({ options: { canContinue: true } }),
    lines: [
      "attempt 1 first",
      "hi",
      "ask text_shown",
      "answer continue",
      "attempt 2 continue",
      "ask recovery_refused",
      "answer stop",
      "end stopped recovery_refused",
    ],
  },
  {
    row: 7,
    rule: "not_retryable",
    when: "the quota is spent",
    attempts: [[fail({ kind: "rejected", reason: "quota" })]],
    lines: ["attempt 1 first", "end do_not_retry not_retryable"],
  },
];

const calls: ReadonlyArray<StrictCase> = [
  {
    row: 8,
    rule: "tool_outcome_unknown",
    when: "even a read whose handler died",
    attempts: [[S.callReady("read"), S.wait(1), reset]],
    play: (its) => {
      const tool = its.guard.readOnly("read", () => Effect.die(new Error("half read")));
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: asks("tool_outcome_unknown", "read:ready"),
  },
  {
    row: 8,
    rule: "tool_outcome_unknown",
    when: "even a read that still runs",
    attempts: [[S.callReady("read"), S.wait(1), reset]],
    play: (its) => {
      const tool = its.guard.readOnly("read", () => Effect.never);
      return { options: { tools: [tool] }, onEvent: starts(tool) };
    },
    lines: asks("tool_outcome_unknown", "read:ready"),
  },
  {
    row: 10,
    rule: "already_complete",
    when: "the finish is malformed and a tool has settled",
    attempts: [[S.callReady("read"), S.wait(1), malformed]],
    play: (its) => {
      const tool = read(its);
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: ["attempt 1 first", "read:ready", "malformed", "completed"],
  },
  {
    row: 12,
    rule: "tool_call_handed_over",
    when: "even a guarded read that was never started",
    attempts: [[S.callReady("read"), S.wait(1), reset]],
    play: (its) => ({ options: { tools: [read(its)] } }),
    lines: asks("tool_call_handed_over", "read:ready"),
  },
  {
    row: 13,
    rule: "tool_input_shown",
    when: "partial input of even a guarded read",
    attempts: [[S.callStarts("read"), S.wait(1), reset]],
    play: (its) => ({ options: { tools: [read(its)] } }),
    lines: asks("tool_input_shown", "read:input_started"),
  },
  {
    row: 13,
    rule: "tool_input_shown",
    when: "complete input of a call that is not whole yet",
    attempts: [[S.callComplete("bash"), S.wait(1), reset]],
    play: (its) => ({ options: { tools: [bash(its)] } }),
    lines: asks("tool_input_shown", "bash:input_complete"),
  },
  {
    row: 14,
    rule: "provider_tool_activity",
    when: "even a read by the provider",
    attempts: [[S.providerCall("web_search"), S.wait(1), reset]],
    play: () => ({ options: { tools: [{ name: "web_search", executor: "provider", effect: "read_only" }] } }),
    lines: asks("provider_tool_activity", "web_search:input_started"),
  },
  {
    row: 15,
    rule: "side_effects_unprovable",
    when: "a hosted tool makes the snapshot incomplete",
    attempts: [[start, reset]],
    play: () => ({ options: { tools: [hosted] } }),
    lines: asks("side_effects_unprovable", "start"),
  },
  {
    row: 15,
    rule: "side_effects_unprovable",
    when: "an unclassified tool makes the snapshot incomplete, even guarded and not called",
    attempts: [[start, reset]],
    play: (its) => ({ options: { tools: [its.guard.unknown("plugin", () => Effect.void)] } }),
    lines: asks("side_effects_unprovable", "start"),
  },
  {
    row: 15,
    rule: "side_effects_unprovable",
    when: "an incomplete snapshot asks although the provider says that it did nothing",
    attempts: [[fail({ kind: "overloaded" })]],
    play: () => ({ options: { tools: [hosted] } }),
    lines: asks("side_effects_unprovable"),
  },
  {
    row: 17,
    rule: "tool_ran",
    when: "a read has settled, and nothing is continued",
    attempts: [[S.callReady("read"), S.wait(1), reset]],
    play: (its) => {
      const tool = read(its);
      return { options: { tools: [tool], canContinue: true, continueText: "auto" }, onEvent: runs(tool) };
    },
    lines: asks("tool_ran", "read:ready"),
  },
];

const outputs: ReadonlyArray<StrictCase> = [
  {
    row: 18,
    rule: "text_shown",
    when: "text was shown, and nothing is continued",
    attempts: [[text("hi"), S.wait(1), reset]],
    play: () => ({ options: { canContinue: true, continueText: "auto" } }),
    lines: asks("text_shown", "hi"),
  },
  {
    row: 18,
    rule: "text_shown",
    when: "text was shown, and nothing is resumed",
    attempts: [[text("hi"), S.wait(1), reset]],
    play: () => ({ options: { cursor: (part) => part.name } }),
    lines: asks("text_shown", "hi"),
  },
  {
    row: 18,
    rule: "text_shown",
    when: "only reasoning was shown",
    attempts: [[S.reasoning("hm"), S.wait(1), reset]],
    lines: asks("text_shown", "(hm)"),
  },
  {
    row: 18,
    rule: "text_shown",
    when: "output was decoded and nothing of it shown",
    attempts: [[S.together(text("hi"), S.errorEvent({ kind: "server_error" }))]],
    lines: asks("text_shown"),
  },
  {
    row: 19,
    rule: "nothing_shown",
    when: "nothing was shown",
    attempts: [[start, S.wait(1), reset], [done]],
    lines: retried("nothing_shown", "start"),
  },
  {
    row: 19,
    rule: "nothing_shown",
    when: "reasoning was decoded and nothing of it shown",
    attempts: [[S.together(S.reasoning("hm"), S.errorEvent({ kind: "server_error" }))], [done]],
    lines: retried("nothing_shown"),
  },
  {
    row: 19,
    rule: "not_processed",
    when: "the provider says that it did nothing",
    attempts: [[fail({ kind: "rate_limited" })], [done]],
    lines: retried("not_processed"),
  },
  {
    row: 19,
    rule: "not_sent",
    when: "the transport proves that no byte was written",
    attempts: [[reset], [done]],
    play: () => ({ reports: (context) => context.attempt === 1 && context.delivery("not_sent") }),
    lines: retried("not_sent"),
  },
  {
    row: 19,
    rule: "credentials_refreshed",
    when: "the credentials can be renewed",
    attempts: [[fail({ kind: "rejected", reason: "auth" })], [done]],
    play: () => ({ options: { refreshCredentials: Effect.void } }),
    lines: retried("credentials_refreshed"),
  },
];

/** The questions before the one retry. */
export const vetoes: ReadonlyArray<Omit<StrictCase, "row">> = [
  {
    rule: "budget_exhausted",
    when: "one retry a run, whatever the budget says",
    attempts: [[reset], [reset]],
    play: () => ({ options: { budget: { max_auto_retries: 9 } } }),
    lines: [
      ...retried("nothing_shown").slice(0, 3),
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "budget_exhausted",
    when: "a retry that cost nothing is a retry too",
    attempts: [[fail({ kind: "overloaded" })], [reset]],
    lines: [
      ...retried("not_processed").slice(0, 3),
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "retry_after_too_long",
    when: "the provider asks for more patience than the budget has",
    attempts: [[fail({ kind: "rate_limited", retry_after_ms: 60_001 })]],
    lines: asks("retry_after_too_long"),
  },
];

export const rows: ReadonlyArray<StrictCase> = [...ends, ...calls, ...outputs];
