/**
 * A script for every rule of the decision table about shown or requested content, with its whole transcript.
 */
import { Effect } from "effect";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";
import { bash, hosted, type RuleCase } from "./RuleBench.ts";

const { done, fail, reset, start, text } = S;
const whole = ["done", "completed"];
const second = [start, done];

/** Rules about shown content. */
export const texts: ReadonlyArray<RuleCase> = [
  {
    rule: "resume_cursor",
    when: "a cursor of the very same response is held",
    attempts: [
      [text("hi"), S.wait(1), reset],
      [text("there"), done],
    ],
    play: () => ({ options: { cursor: (part) => part.name } }),
    lines: ["attempt 1 first", "hi", "retry resume resume_cursor", "attempt 2 resume", "there", ...whole],
  },
  {
    rule: "text_shown",
    when: "the cursor of a shown text is refused",
    attempts: [[text("hi"), S.wait(1), reset], [fail({ kind: "rejected", reason: "not_found" })]],
    play: () => ({ options: { cursor: (part) => part.name } }),
    lines: [
      "attempt 1 first",
      "hi",
      "retry resume resume_cursor",
      "attempt 2 resume",
      "ask text_shown",
      "answer stop",
      "end stopped text_shown",
    ],
  },
  {
    rule: "text_closed_by_call",
    when: "a guarded call had begun after the text",
    attempts: [[text("hi"), S.callStarts("bash"), S.wait(1), reset], second],
    play: (bench) => ({ options: { tools: [bash(bench)], canContinue: true } }),
    lines: [
      "attempt 1 first",
      "hi",
      "bash:input_started",
      "retry continue text_closed_by_call",
      "discard 1 after 1",
      "attempt 2 continue",
      "start",
      ...whole,
    ],
  },
  {
    rule: "continue_text",
    when: "text was shown and a continuation needs no question",
    attempts: [
      [text("hi"), S.wait(1), reset],
      [start, text("hi"), text(" there"), done],
    ],
    play: () => ({ options: { canContinue: true, continueText: "auto", seam: scriptedSeam() } }),
    lines: [
      "attempt 1 first",
      "hi",
      "retry continue continue_text",
      "attempt 2 continue",
      "continued 2 at 2 by anchor",
      " there",
      ...whole,
    ],
  },
  {
    rule: "text_shown",
    when: "text was shown",
    attempts: [[text("hi"), S.wait(1), reset]],
    lines: ["attempt 1 first", "hi", "ask text_shown", "answer stop", "end stopped text_shown"],
  },
  {
    rule: "only_reasoning_shown",
    when: "only reasoning was shown",
    attempts: [[S.reasoning("hm"), S.wait(1), reset], second],
    lines: [
      "attempt 1 first",
      "(hm)",
      "retry replay only_reasoning_shown",
      "discard 1 after 0",
      "attempt 2 replay",
      "start",
      ...whole,
    ],
  },
  {
    rule: "nothing_shown",
    when: "nothing was shown",
    attempts: [[start, S.wait(1), reset], second],
    lines: [
      "attempt 1 first",
      "start",
      "retry replay nothing_shown",
      "discard 1 after 0",
      "attempt 2 replay",
      "start",
      ...whole,
    ],
  },
];

/** Rules about the request itself, and the questions before a retry. */
export const requests: ReadonlyArray<RuleCase> = [
  {
    rule: "credentials_refreshed",
    when: "the credentials were refused and can be renewed",
    attempts: [[fail({ kind: "rejected", reason: "auth" })], second],
    play: () => ({ options: { refreshCredentials: Effect.void } }),
    lines: ["attempt 1 first", "retry replay credentials_refreshed", "attempt 2 replay", "start", ...whole],
  },
  {
    rule: "not_sent",
    when: "the transport proves that no byte was written",
    attempts: [[reset], second],
    play: () => ({ reports: (context) => context.attempt === 1 && context.delivery("not_sent") }),
    lines: ["attempt 1 first", "retry replay not_sent", "attempt 2 replay", "start", ...whole],
  },
  {
    rule: "not_processed",
    when: "the provider says that it did nothing",
    attempts: [[fail({ kind: "overloaded" })], second],
    play: () => ({ options: { tools: [hosted] } }),
    lines: ["attempt 1 first", "retry replay not_processed", "attempt 2 replay", "start", ...whole],
  },
  {
    rule: "retry_after_too_long",
    when: "the provider asks for more patience than the budget has",
    attempts: [[fail({ kind: "rate_limited", retry_after_ms: 60_001 })]],
    lines: ["attempt 1 first", "ask retry_after_too_long", "answer stop", "end stopped retry_after_too_long"],
  },
  {
    rule: "budget_exhausted",
    when: "three automatic retries were spent",
    attempts: [[reset], [reset], [reset], [reset]],
    lines: [
      "attempt 1 first",
      "retry replay nothing_shown",
      "attempt 2 replay",
      "retry replay nothing_shown",
      "attempt 3 replay",
      "retry replay nothing_shown",
      "attempt 4 replay",
      "ask budget_exhausted",
      "answer stop",
      "end stopped budget_exhausted",
    ],
  },
];
