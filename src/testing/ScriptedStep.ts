/**
 * Writes the steps that a ScriptedProvider plays: parts with what they prove, waits, and ways to break.
 *
 * ```ts
 * const broken = [Step.start, Step.text("hel"), Step.reset]
 * const whole = [Step.start, Step.text("hello"), Step.done]
 * ```
 */
import type { Duration, Effect } from "effect";
import type { Failure } from "../domain/Failure.ts";
import * as Observation from "../domain/Observation.ts";

/** A part of a scripted provider: a name for transcripts, and what it proves. */
export interface ScriptedPart {
  readonly name: string;
  readonly says: Observation.Observation;
}

/** What a scripted provider does next. */
export type ScriptedStep =
  | { readonly do: "part"; readonly part: ScriptedPart }
  | { readonly do: "together"; readonly parts: ReadonlyArray<ScriptedPart> }
  | { readonly do: "wait"; readonly duration: Duration.Input }
  | { readonly do: "run"; readonly effect: Effect.Effect<unknown> }
  | { readonly do: "fail"; readonly failure: Failure }
  | { readonly do: "die"; readonly defect: unknown }
  | { readonly do: "stall" };

/**
 * Any part.
 *
 * @param name what a transcript calls it
 * @param says what it proves
 */
export const part = (name: string, says: Observation.Observation): ScriptedStep => ({
  do: "part",
  part: { name, says },
});

/** A lifecycle event (`message_start`): the stream has started, which is no progress. */
export const start: ScriptedStep = part("start", Observation.lifecycle);

/** A keep-alive. */
export const ping: ScriptedStep = part("ping", Observation.ping);

/** Visible text. */
export const text = (it: string): ScriptedStep => part(it, Observation.text(it.length));

/** Reasoning; a transcript has it in brackets. */
export const reasoning = (it: string): ScriptedStep => part(`(${it})`, Observation.reasoning(it.length));

/** The provider's terminal marker. */
export const done: ScriptedStep = part("done", Observation.terminal("stop"));

/** An error event inside the stream. */
export const errorEvent = (failure: Failure): ScriptedStep => part("error", Observation.failed(failure));

/** One part of a tool call of the runtime. */
const call = (
  phase: Observation.CallSignal["phase"],
  tool: string,
  ordinal: number,
  executor: "runtime" | "provider",
) =>
  part(
    `${tool}:${phase}`,
    Observation.calls([{ choice: 0, ordinal, id: `id${ordinal}`, tool, executor, phase, input: "{}" }]),
  );

/** A tool call begins: its name has come, its arguments have not. `ordinal` counts the calls of the response, from 0. */
export const callStarts = (tool: string, ordinal = 0): ScriptedStep => call("input_started", tool, ordinal, "runtime");

/** The arguments of a call have ended. */
export const callComplete = (tool: string, ordinal = 0): ScriptedStep =>
  call("input_complete", tool, ordinal, "runtime");

/** A call is whole and may run: the caller is handed it. */
export const callReady = (tool: string, ordinal = 0): ScriptedStep => call("ready", tool, ordinal, "runtime");

/** A call that the provider executes itself begins. */
export const providerCall = (tool: string, ordinal = 0): ScriptedStep =>
  call("input_started", tool, ordinal, "provider");

/** Several parts that arrive at once. */
export const together = (...steps: ReadonlyArray<ScriptedStep>): ScriptedStep => ({
  do: "together",
  parts: steps.flatMap((step) => (step.do === "part" ? [step.part] : [])),
});

/** A pause, on the test's clock. */
export const wait = (duration: Duration.Input): ScriptedStep => ({ do: "wait", duration });

/** Runs something at this place of the stream. */
export const run = (effect: Effect.Effect<unknown>): ScriptedStep => ({ do: "run", effect });

/** Breaks the stream with a failure; its error is a `ProviderBroke` that carries it. */
export const fail = (failure: Failure): ScriptedStep => ({ do: "fail", failure });

/** A connection reset. */
export const reset: ScriptedStep = fail({ kind: "transport", code: "ECONNRESET" });

/** A defect inside the provider's stream. */
export const die = (defect: unknown): ScriptedStep => ({ do: "die", defect });

/** Silence for ever: a clock has to end it. (A script that only stops ends cleanly without its terminal marker.) */
export const stall: ScriptedStep = { do: "stall" };
