/**
 * Plays scripts through `StreamProcessor.run`, with tools, callers and options for the cases of the decision table.
 */
import { Effect, Layer } from "effect";
import type { Choice, Rule } from "../../../src/domain/Decision.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { ToolBoundary } from "../../../src/domain/SideEffects.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type GuardedTool, ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

export interface Bench {
  readonly guard: ToolGuard["Service"];
  readonly processor: StreamProcessor["Service"];
  readonly recorder: RunRecorder["Service"];
}

export type OnEvent = (event: RunEvent<S.ScriptedPart>) => Effect.Effect<unknown>;

/** The caller's side of a case. */
export interface Play {
  readonly options?: S.More;
  readonly onEvent?: OnEvent;
  /** Reports of the transport as soon as an attempt is opened. */
  readonly reports?: (context: AttemptContext) => void;
}

export interface RuleCase {
  readonly rule: Rule;
  readonly when: string;
  /** One script per attempt; each of them must be played. */
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
/** A runtime tool without a guard. */
export const plain: ToolBoundary = { name: "bash", executor: "runtime", effect: "mutating" };
/** A mutating hosted tool. */
export const hosted: ToolBoundary = { name: "deploy", executor: "provider", effect: "mutating" };

/** The caller of an agent runtime: runs every call that it gets, and continues when the handler has ended. */
export const runs =
  (tool: Guarded): OnEvent =>
  (event) =>
    event._tag === "Part"
      ? Effect.forEach(event.calls ?? [], (call) => Effect.exit(tool.run(call, call.input)))
      : Effect.void;

/** Like `runs`, but does not wait for the handlers. */
export const starts =
  (tool: Guarded): OnEvent =>
  (event) =>
    event._tag === "Part"
      ? Effect.forEach(event.calls ?? [], (call) => Effect.forkDetach(tool.run(call, call.input)))
      : Effect.void;

/** Runs an effect when the caller gets a part with that name. */
export const at =
  (name: string, effect: Effect.Effect<unknown>): OnEvent =>
  (event) =>
    event._tag === "Part" && event.part.name === name ? effect : Effect.void;

/** A finish with a call that does not parse: marker and failure in one part, like in the protocols. */
export const malformed: S.Step = {
  part: {
    name: "malformed",
    says: { ...Observation.terminal("tool_calls"), failure: { kind: "invalid_tool_input", in_band: true } },
  },
};

export const optionsOf = (it: Pick<RuleCase, "attempts" | "play">, bench: Bench, more: S.More = {}) => {
  const play = it.play?.(bench) ?? {};
  const provider = S.scripted(...it.attempts);
  const attempt = (context: AttemptContext) => {
    play.reports?.(context);
    return provider.attempt(context);
  };
  return { provider, onEvent: play.onEvent, options: S.options({ attempt }, { runId, ...play.options, ...more }) };
};

export const bench: Effect.Effect<Bench, never, RunRecorder | StreamProcessor | ToolGuard> = Effect.gen(function* () {
  return { guard: yield* ToolGuard, processor: yield* StreamProcessor, recorder: yield* RunRecorder };
});

/** The part of a case that is played. */
export type Scenario = Pick<RuleCase, "attempts" | "play" | "answers">;

/**
 * Plays a scenario to its end and returns the events, the provider requests and the record.
 *
 * @param more options in addition to the scenario's
 * @param drainMs maximum wait of a decision for handlers, short enough for a test with an endless one
 */
export const playedOut = (scenario: Scenario, more: S.More = {}, drainMs = 1_000) =>
  Effect.gen(function* () {
    const its = yield* bench;
    const { options, onEvent, provider } = optionsOf(scenario, its, more);
    const seen = yield* S.played(its.processor.run(options), onEvent);
    return { ...seen, provider, record: yield* S.recordOf(runId) };
  }).pipe(
    Effect.provide(S.processor(scenario.answers).pipe(Layer.provide(Layer.succeed(ProcessorConfig, { drainMs })))),
  );
