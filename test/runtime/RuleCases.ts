/**
 * Holds a script for every rule of the decision table: what the provider does, what the caller does, and the whole
 * transcript that comes of it.
 */
import { Effect } from "effect";
import type { Choice, Rule } from "../../src/domain/Decision.ts";
import * as Observation from "../../src/domain/Observation.ts";
import type { ToolBoundary } from "../../src/domain/SideEffects.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../src/runtime/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../src/runtime/RunOptions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../src/runtime/ToolGuard.ts";
import * as S from "./Scripted.ts";

/** What a case plays with. */
export interface Bench {
  readonly guard: ToolGuard["Service"];
  readonly processor: StreamProcessor["Service"];
  readonly recorder: RunRecorder["Service"];
}

export type OnEvent = (event: RunEvent<S.ScriptedPart>) => Effect.Effect<unknown>;

/** The caller's side of a case. */
export interface Play {
  readonly options?: Partial<RunOptions<S.ScriptedPart, S.ProviderBroke, never>>;
  readonly onEvent?: OnEvent;
  /** What the transport reports as soon as an attempt is opened. */
  readonly reports?: (context: AttemptContext) => void;
}

export interface RuleCase {
  readonly rule: Rule;
  readonly when: string;
  /** One script an attempt; every one of them must be played. */
  readonly attempts: ReadonlyArray<ReadonlyArray<S.Step>>;
  readonly play?: (bench: Bench) => Play;
  readonly answers?: ReadonlyArray<Choice>;
  readonly lines: ReadonlyArray<string>;
}

export const runId = "run-1";

type Guarded = GuardedTool<unknown, string, never, never>;

export const bash = (bench: Bench, handler: Effect.Effect<string> = Effect.succeed("ran")): Guarded =>
  bench.guard.mutating("bash", () => handler);
export const read = (bench: Bench): Guarded => bench.guard.readOnly("read", () => Effect.succeed("read"));
/** A runtime tool that no guard was made for. */
export const plain: ToolBoundary = { name: "bash", executor: "runtime", effect: "mutating" };
/** A tool that the provider runs and that changes something. */
export const hosted: ToolBoundary = { name: "deploy", executor: "provider", effect: "mutating" };

/** The caller of an agent runtime: runs every call that it is handed, and goes on when a handler has ended. */
export const runs =
  (tool: Guarded): OnEvent =>
  (event) =>
    event._tag === "Part"
      ? Effect.forEach(event.calls ?? [], (call) => Effect.exit(tool.run(call, call.input)))
      : Effect.void;

/** As `runs`, but does not wait for the handlers. */
export const starts =
  (tool: Guarded): OnEvent =>
  (event) =>
    event._tag === "Part"
      ? Effect.forEach(event.calls ?? [], (call) => Effect.forkDetach(tool.run(call, call.input)))
      : Effect.void;

/** Does something when the caller is handed a part of that name. */
export const at =
  (name: string, effect: Effect.Effect<unknown>): OnEvent =>
  (event) =>
    event._tag === "Part" && event.part.name === name ? effect : Effect.void;

const { done, fail, reset, start, text } = S;
const whole = ["done", "completed"];
/** A finish with a call in it that cannot be read: marker and failure in one part, as the protocols give it. */
export const malformed: S.Step = {
  part: {
    name: "malformed",
    says: { ...Observation.terminal("tool_calls"), failure: { kind: "invalid_tool_input", in_band: true } },
  },
};
const second = [start, done];
const overloaded = fail({ kind: "overloaded" });

const stops: ReadonlyArray<RuleCase> = [
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
    when: "nobody knows what broke",
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

const tools: ReadonlyArray<RuleCase> = [
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

const texts: ReadonlyArray<RuleCase> = [
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
    attempts: [[text("hi"), S.wait(1), reset], second],
    play: () => ({ options: { canContinue: true, continueText: "auto" } }),
    lines: ["attempt 1 first", "hi", "retry continue continue_text", "attempt 2 continue", "start", ...whole],
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

const requests: ReadonlyArray<RuleCase> = [
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

/** The other ways in which a budget is spent, and a stop that does not wait for a refresh. */
const limits: ReadonlyArray<RuleCase> = [
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

/** All cases that one run alone can play; `throttled` needs a storm and stands in the test itself. */
export const cases: ReadonlyArray<RuleCase> = [...stops, ...tools, ...texts, ...requests, ...limits];

/** The options of a case. */
export const optionsOf = (it: Pick<RuleCase, "attempts" | "play">, bench: Bench) => {
  const play = it.play?.(bench) ?? {};
  const provider = S.scripted(...it.attempts);
  const attempt = (context: AttemptContext) => {
    play.reports?.(context);
    return provider.attempt(context);
  };
  return { provider, onEvent: play.onEvent, options: S.options({ attempt }, { runId, ...play.options }) };
};

export const bench: Effect.Effect<Bench, never, RunRecorder | StreamProcessor | ToolGuard> = Effect.gen(function* () {
  return { guard: yield* ToolGuard, processor: yield* StreamProcessor, recorder: yield* RunRecorder };
});
