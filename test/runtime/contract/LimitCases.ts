/**
 * Holds the other ways in which a budget is spent, a request repeats itself or a refresh ends, each with its whole transcript.
 */
import { Effect } from "effect";
import { bash, type RuleCase, runId, runs } from "../recovery/RuleBench.ts";
import * as S from "../Scripted.ts";

const { done, fail, reset, start, text } = S;
const whole = ["done", "completed"];
const second = [start, done];
const overloaded = fail({ kind: "overloaded" });

/** The other ways in which a budget is spent, and a stop that does not wait for a refresh. */
export const limits: ReadonlyArray<RuleCase> = [
  {
    rule: "budget_exhausted",
    when: "a second replay after something was shown",
    attempts: [
      [S.reasoning("hm"), S.wait(1), reset],
      [S.reasoning("hm"), S.wait(1), reset],
    ],
    lines: [
      "attempt 1 first",
      "(hm)",
      "retry replay only_reasoning_shown",
      "discard 1 after 0",
      "attempt 2 replay",
      "(hm)",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "budget_exhausted",
    when: "a second replay after a stall",
    attempts: [[S.never], [S.never]],
    play: () => ({ options: { clocks: { first_progress: 1_000 } } }),
    lines: [
      "attempt 1 first",
      "retry replay nothing_shown",
      "attempt 2 replay",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "budget_exhausted",
    when: "what costs nothing has a budget of its own",
    attempts: [[overloaded], [reset], [overloaded], [overloaded]],
    play: () => ({ options: { budget: { max_not_processed: 2, max_auto_retries: 1 } } }),
    lines: [
      "attempt 1 first",
      "retry replay not_processed",
      "attempt 2 replay",
      "retry replay nothing_shown",
      "attempt 3 replay",
      "retry replay not_processed",
      "attempt 4 replay",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "token_budget",
    when: "the retry would repeat more tokens than may be wasted",
    attempts: [[reset]],
    play: () => ({ options: { requestTokens: 1_001, budget: { max_wasted_tokens: 1_000 } } }),
    lines: ["attempt 1 first", "ask token_budget", "answer stop", "end stopped token_budget"],
  },
  {
    rule: "budget_exhausted",
    when: "resumes are retries too",
    attempts: [[text("a"), S.wait(1), reset], [reset]],
    play: () => ({ options: { cursor: (part) => part.name, budget: { max_auto_retries: 1 } } }),
    lines: [
      "attempt 1 first",
      "a",
      "retry resume resume_cursor",
      "attempt 2 resume",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "budget_exhausted",
    when: "five minutes without progress have gone since the first failure",
    attempts: [[reset], [start, S.wait(170_000), reset], [start, S.wait(170_000), reset]],
    lines: [
      "attempt 1 first",
      "retry replay nothing_shown",
      "attempt 2 replay",
      "start",
      "retry replay nothing_shown",
      "discard 2 after 0",
      "attempt 3 replay",
      "start",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
  {
    rule: "not_retryable",
    when: "the credentials could not be renewed",
    attempts: [[fail({ kind: "rejected", reason: "auth" })]],
    play: () => ({ options: { refreshCredentials: Effect.fail("offline") } }),
    lines: ["attempt 1 first", "retry replay credentials_refreshed", "end do_not_retry not_retryable"],
  },
  {
    rule: "not_retryable",
    when: "renewing the credentials died",
    attempts: [[fail({ kind: "rejected", reason: "auth" })]],
    play: () => ({ options: { refreshCredentials: Effect.die(new Error("bug")) } }),
    lines: ["attempt 1 first", "retry replay credentials_refreshed", "end do_not_retry not_retryable"],
  },
  {
    rule: "user_cancelled",
    when: "the user cancels while the credentials are renewed",
    attempts: [[fail({ kind: "rejected", reason: "auth" })]],
    play: ({ processor }) => ({
      options: { refreshCredentials: Effect.andThen(Effect.forkDetach(processor.cancel(runId)), Effect.never) },
    }),
    lines: ["attempt 1 first", "retry replay credentials_refreshed", "end do_not_retry user_cancelled"],
  },
  {
    rule: "nothing_shown",
    when: "a finish with nothing in it is a failure where that was asked for",
    attempts: [
      [start, done],
      [text("hi"), done],
    ],
    play: () => ({ options: { emptyIsFailure: true } }),
    lines: [
      "attempt 1 first",
      "start",
      "done",
      "retry replay nothing_shown",
      "discard 1 after 0",
      "attempt 2 replay",
      "hi",
      ...whole,
    ],
  },
  {
    rule: "nothing_shown",
    when: "a clean end without the marker is a failure (L5)",
    attempts: [[start], [text("hi"), done]],
    lines: [
      "attempt 1 first",
      "start",
      "retry replay nothing_shown",
      "discard 1 after 0",
      "attempt 2 replay",
      "hi",
      ...whole,
    ],
  },
  {
    rule: "not_processed",
    when: "a continuation that is put off repeats itself, never the first request (L3)",
    attempts: [[S.callReady("bash"), S.wait(1), reset], [overloaded], second],
    play: (bench) => {
      const tool = bash(bench);
      return { options: { tools: [tool], canContinue: true }, onEvent: runs(tool) };
    },
    lines: [
      "attempt 1 first",
      "bash:ready",
      "retry continue tools_settled",
      "attempt 2 continue",
      "retry replay not_processed",
      "attempt 3 replay",
      "start",
      ...whole,
    ],
  },
];
