/**
 * Builds the steps that a ScriptedProvider plays: parts with their observations, waits, and breaks.
 *
 * ```ts
 * const broken = [Step.start, Step.text("hel"), Step.reset]
 * const whole = [Step.start, Step.text("hello"), Step.done]
 * ```
 */
import type { Duration, Effect } from "effect";
import type { Failure } from "../domain/Failure.ts";
import * as Observation from "../domain/Observation.ts";

/** A part of a scripted provider: its name in transcripts, and its observation. */
export interface ScriptedPart {
  readonly name: string;
  readonly says: Observation.Observation;
}

/** One step of a scripted provider. */
export type ScriptedStep =
  | { readonly do: "part"; readonly part: ScriptedPart }
  | { readonly do: "together"; readonly parts: ReadonlyArray<ScriptedPart> }
  | { readonly do: "wait"; readonly duration: Duration.Input }
  | { readonly do: "run"; readonly effect: Effect.Effect<unknown> }
  | { readonly do: "fail"; readonly failure: Failure }
  | { readonly do: "die"; readonly defect: unknown }
  | { readonly do: "stall" };

/**
 * Builds a step that delivers one part.
 *
 * @param name name of the part in a transcript
 */
export const part = (name: string, says: Observation.Observation): ScriptedStep => ({
  do: "part",
  part: { name, says },
});

/** A lifecycle event (`message_start`): the stream has started but made no progress. */
export const start: ScriptedStep = part("start", Observation.lifecycle);

/** A keep-alive event. */
export const ping: ScriptedStep = part("ping", Observation.ping);

/** A part of visible text. */
export const text = (it: string): ScriptedStep => part(it, Observation.text(it.length));

/** A part of reasoning, which transcripts show in parentheses. */
export const reasoning = (it: string): ScriptedStep => part(`(${it})`, Observation.reasoning(it.length));

/** The provider's terminal marker. */
export const done: ScriptedStep = part("done", Observation.terminal("stop"));

/** An error event in the stream. */
export const errorEvent = (failure: Failure): ScriptedStep => part("error", Observation.failed(failure));

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

/** The start of a tool call: its name has arrived, its arguments have not. `ordinal` counts the calls of the response, from 0. */
export const callStarts = (tool: string, ordinal = 0): ScriptedStep => call("input_started", tool, ordinal, "runtime");

/** The end of a call's arguments. */
export const callComplete = (tool: string, ordinal = 0): ScriptedStep =>
  call("input_complete", tool, ordinal, "runtime");

/** A complete call, which is handed to the caller and may run. */
export const callReady = (tool: string, ordinal = 0): ScriptedStep => call("ready", tool, ordinal, "runtime");

/** The start of a call that the provider executes itself. */
export const providerCall = (tool: string, ordinal = 0): ScriptedStep =>
  call("input_started", tool, ordinal, "provider");

/** Several parts that arrive in one chunk. */
export const together = (...steps: ReadonlyArray<ScriptedStep>): ScriptedStep => ({
  do: "together",
  parts: steps.flatMap((step) => (step.do === "part" ? [step.part] : [])),
});

/** A pause on the test clock. */
export const wait = (duration: Duration.Input): ScriptedStep => ({ do: "wait", duration });

/** Runs an effect at this point of the stream. */
export const run = (effect: Effect.Effect<unknown>): ScriptedStep => ({ do: "run", effect });

/** Breaks the stream with a `ProviderBroke` that carries this failure. */
export const fail = (failure: Failure): ScriptedStep => ({ do: "fail", failure });

/** A connection reset. */
export const reset: ScriptedStep = fail({ kind: "transport", code: "ECONNRESET" });

/** A defect inside the provider's stream. */
export const die = (defect: unknown): ScriptedStep => ({ do: "die", defect });

/** Silence until a clock ends the attempt. Without this step, a script that stops early ends cleanly, but without its terminal marker. */
export const stall: ScriptedStep = { do: "stall" };
