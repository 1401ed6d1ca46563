/**
 * A script for every rule of the decision table that ends a run or concerns tools, with its whole transcript.
 */
import { Effect } from "effect";
import { at, bash, hosted, malformed, plain, type RuleCase, read, runId, runs, starts } from "../recovery/RuleBench.ts";
import * as S from "../Scripted.ts";

const { done, fail, reset, start, text } = S;
const whole = ["done", "completed"];
const second = [start, done];

/** Rules that end a run. */
export const stops: ReadonlyArray<RuleCase> = [
  {
    rule: "already_complete",
    when: "the connection breaks after the terminal marker",
    attempts: [[start, text("hi"), done, reset]],
    lines: ["attempt 1 first", "start", "hi", ...whole],
  },
  {
    rule: "already_complete",
    when: "the terminal marker and an error come in one chunk",
    attempts: [[start, S.together(text("hi"), done, S.errorEvent({ kind: "server_error" }))]],
    lines: ["attempt 1 first", "start", "hi", ...whole],
  },
  {
    rule: "already_complete",
    when: "the finish is malformed and a tool has settled",
    attempts: [[S.callReady("read"), S.wait(1), malformed]],
    play: (bench) => {
      const tool = read(bench);
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: ["attempt 1 first", "read:ready", "malformed", "completed"],
  },
  {
    rule: "already_complete",
    when: "the finish is malformed and a replay would need a question",
    attempts: [[text("hi"), S.wait(1), malformed]],
    lines: ["attempt 1 first", "hi", "malformed", "completed"],
  },
  {
    rule: "user_cancelled",
    when: "the user cancels",
    attempts: [[start, text("hi"), S.never]],
    play: ({ processor }) => ({ onEvent: at("hi", processor.cancel(runId)) }),
    lines: ["attempt 1 first", "start", "hi", "end do_not_retry user_cancelled"],
  },
  {
    rule: "user_cancelled",
    when: "the user cancels while a retry waits",
    attempts: [[reset]],
    play: ({ processor }) => ({
      onEvent: (event) => (event._tag === "RetryScheduled" ? processor.cancel(runId) : Effect.void),
    }),
    lines: ["attempt 1 first", "retry replay nothing_shown", "end do_not_retry user_cancelled"],
  },
  {
    rule: "lifecycle_closed",
    when: "the processor closes",
    attempts: [[start, text("hi"), S.never]],
    play: ({ processor }) => ({ onEvent: at("hi", processor.close("shutdown")) }),
    lines: ["attempt 1 first", "start", "hi", "end do_not_retry lifecycle_closed"],
  },
  {
    rule: "caller_interrupted",
    when: "the caller interrupts itself, unsigned",
    attempts: [[start, text("hi"), S.never]],
    play: () => ({ onEvent: at("hi", Effect.interrupt) }),
    lines: ["attempt 1 first", "start", "hi", "interrupted"],
  },
  {
    rule: "unknown_failure",
    when: "the failure is unknown",
    attempts: [[start, fail({ kind: "unknown" })]],
    lines: ["attempt 1 first", "start", "ask unknown_failure", "answer stop", "end stopped unknown_failure"],
  },
  {
    rule: "recovery_refused",
    when: "a continuation is refused for good",
    attempts: [[S.callReady("bash"), S.wait(1), reset], [fail({ kind: "rejected", reason: "invalid_request" })]],
    play: (bench) => {
      const tool = bash(bench);
      return { options: { tools: [tool], canContinue: true }, onEvent: runs(tool) };
    },
    lines: [
      "attempt 1 first",
      "bash:ready",
      "retry continue tools_settled",
      "attempt 2 continue",
      "ask recovery_refused",
      "answer stop",
      "end stopped recovery_refused",
    ],
  },
  {
    rule: "not_retryable",
    when: "the quota is spent",
    attempts: [[fail({ kind: "rejected", reason: "quota" })]],
    lines: ["attempt 1 first", "end do_not_retry not_retryable"],
  },
  {
    rule: "not_retryable",
    when: "refreshed credentials are refused again",
    attempts: [[fail({ kind: "rejected", reason: "auth" })], [fail({ kind: "rejected", reason: "auth" })]],
    play: () => ({ options: { refreshCredentials: Effect.void } }),
    lines: [
      "attempt 1 first",
      "retry replay credentials_refreshed",
      "attempt 2 replay",
      "end do_not_retry not_retryable",
    ],
  },
];

/** Rules about tools. */
export const tools: ReadonlyArray<RuleCase> = [
  {
    rule: "tool_outcome_unknown",
    when: "a handler dies in the middle",
    attempts: [[S.callReady("bash"), S.wait(1), reset]],
    play: (bench) => {
      const tool = bash(bench, Effect.die(new Error("half done")));
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: [
      "attempt 1 first",
      "bash:ready",
      "ask tool_outcome_unknown",
      "answer stop",
      "end stopped tool_outcome_unknown",
    ],
  },
  {
    rule: "tool_outcome_unknown",
    when: "a handler still runs when the drain limit is over",
    attempts: [[S.callReady("bash"), S.wait(1), reset]],
    play: (bench) => {
      const tool = bash(bench, Effect.never);
      return { options: { tools: [tool] }, onEvent: starts(tool) };
    },
    lines: [
      "attempt 1 first",
      "bash:ready",
      "ask tool_outcome_unknown",
      "answer stop",
      "end stopped tool_outcome_unknown",
    ],
  },
  {
    rule: "tool_call_handed_over",
    when: "an unguarded call was handed over",
    attempts: [[S.callReady("bash"), S.wait(1), reset]],
    play: () => ({ options: { tools: [plain] } }),
    lines: [
      "attempt 1 first",
      "bash:ready",
      "ask tool_call_handed_over",
      "answer stop",
      "end stopped tool_call_handed_over",
    ],
  },
  {
    rule: "tool_input_shown",
    when: "a part of an unguarded call's input was handed over",
    attempts: [[S.callStarts("bash"), S.wait(1), reset]],
    play: () => ({ options: { tools: [plain] } }),
    lines: [
      "attempt 1 first",
      "bash:input_started",
      "ask tool_input_shown",
      "answer stop",
      "end stopped tool_input_shown",
    ],
  },
  {
    rule: "provider_tool_activity",
    when: "the provider began to run a tool that changes something",
    attempts: [[S.providerCall("deploy"), S.wait(1), reset]],
    play: () => ({ options: { tools: [hosted] } }),
    lines: [
      "attempt 1 first",
      "deploy:input_started",
      "ask provider_tool_activity",
      "answer stop",
      "end stopped provider_tool_activity",
    ],
  },
  {
    rule: "side_effects_unprovable",
    when: "a hosted tool was exposed and nothing proves that it did not run",
    attempts: [[start, reset]],
    play: () => ({ options: { tools: [hosted] } }),
    lines: [
      "attempt 1 first",
      "start",
      "ask side_effects_unprovable",
      "answer stop",
      "end stopped side_effects_unprovable",
    ],
  },
  {
    rule: "tools_settled",
    when: "a tool has settled and the runtime can continue",
    attempts: [[S.callReady("bash"), S.wait(1), reset], second],
    play: (bench) => {
      const tool = bash(bench);
      return { options: { tools: [tool], canContinue: true }, onEvent: runs(tool) };
    },
    lines: ["attempt 1 first", "bash:ready", "retry continue tools_settled", "attempt 2 continue", "start", ...whole],
  },
  {
    rule: "tool_ran",
    when: "a tool has settled and nothing can continue",
    attempts: [[S.callReady("bash"), S.wait(1), reset]],
    play: (bench) => {
      const tool = bash(bench);
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: ["attempt 1 first", "bash:ready", "ask tool_ran", "answer stop", "end stopped tool_ran"],
  },
  {
    rule: "tool_calls_fenced",
    when: "a guarded call was handed over and never dispatched",
    attempts: [[S.callReady("bash"), S.wait(1), reset], second],
    play: (bench) => ({ options: { tools: [bash(bench)] } }),
    lines: [
      "attempt 1 first",
      "bash:ready",
      "retry replay tool_calls_fenced",
      "discard 1 after 0",
      "attempt 2 replay",
      "start",
      ...whole,
    ],
  },
  {
    rule: "only_read_only_tools",
    when: "only a tool that changes nothing has run",
    attempts: [[S.callReady("read"), S.wait(1), reset], second],
    play: (bench) => {
      const tool = read(bench);
      return { options: { tools: [tool] }, onEvent: runs(tool) };
    },
    lines: [
      "attempt 1 first",
      "read:ready",
      "retry replay only_read_only_tools",
      "discard 1 after 0",
      "attempt 2 replay",
      "start",
      ...whole,
    ],
  },
];
