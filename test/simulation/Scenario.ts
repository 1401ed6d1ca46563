/**
 * Describes one simulated run as plain JSON: what the provider, the tools, the consumer, the recorder, the person who is
 * asked and the world outside do. The same scenario always plays the same way.
 */
import type { Delivery } from "../../src/domain/Attempt.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import type { CallSignal } from "../../src/domain/Observation.ts";
import type { Budget } from "../../src/domain/Run.ts";
import type { Executor, ToolEffect } from "../../src/domain/SideEffects.ts";
import type { ClockOptions } from "../../src/runtime/Clocks.ts";

/** A part that the scripted provider says. */
export type PartStep =
  | { readonly say: "start" | "ping" | "usage" | "text" | "reasoning" | "terminal" }
  /** The marker is this part together with a clean end (Gemini). */
  | { readonly say: "terminal_at_end"; readonly text: boolean }
  | {
      readonly say: "call";
      readonly phase: CallSignal["phase"];
      readonly ordinal: number;
      readonly id: string;
      readonly tool: string;
      readonly executor: Executor;
    }
  /** An error event; `terminal` for a finish whose content is malformed. */
  | { readonly say: "error"; readonly failure: Failure; readonly terminal: boolean };

export type Step =
  | PartStep
  | { readonly chunk: ReadonlyArray<PartStep> }
  | { readonly wait: number }
  /** Waits and cannot be interrupted meanwhile. */
  | { readonly stubborn: number }
  | { readonly bytes: number }
  | { readonly delivery: Delivery }
  | { readonly fail: Failure }
  | { readonly die: true }
  | { readonly interrupt: true }
  | { readonly never: true };

export interface AttemptScript {
  readonly steps: ReadonlyArray<Step>;
  /** How long the source's finalizer takes, in milliseconds; `hang` is for ever. */
  readonly closes: number | "hang";
  /** The factory throws instead of giving a stream. */
  readonly factoryThrows: boolean;
}

export interface ToolSpec {
  readonly name: string;
  readonly executor: Executor;
  readonly effect: ToolEffect;
  /** Made by ToolGuard. */
  readonly guarded: boolean;
  readonly handler: "fast" | "slow" | "failing" | "dying" | "hanging";
  readonly ms: number;
}

/** When something from outside happens: at a virtual time, or in the step of the n-th thing of a kind. */
export type Moment =
  | { readonly at: number }
  | { readonly on: "event" | "write" | "handler" | "question" | "opened"; readonly nth: number };

export type Outside = "cancel" | "close" | "interrupt" | "signed_user" | "signed_lifecycle";

export interface Scenario {
  readonly seed: number;
  readonly surface: "run" | "parts";
  readonly attempts: ReadonlyArray<AttemptScript>;
  readonly tools: ReadonlyArray<ToolSpec>;
  readonly toolUse: {
    readonly when: "inline" | "background" | "after";
    /** Between the hand-over and the start, in milliseconds. */
    readonly delay: number;
    /** Guarded calls are asked for twice. */
    readonly twice: boolean;
    /** Only the provider's id reaches the handler. */
    readonly byId: boolean;
  };
  readonly options: {
    readonly reveal: "live" | "on_complete";
    readonly canContinue: boolean;
    readonly continueText: "ask" | "auto";
    readonly cursor: boolean;
    readonly refresh: "none" | "ok" | "failing" | "dying" | "hanging";
    readonly emptyIsFailure: boolean;
    readonly streaming: boolean;
    readonly policy: "default" | "strict";
    readonly clocks: ClockOptions;
    readonly budget: Partial<Budget>;
  };
  /** Milliseconds; null is without limit. */
  readonly drainMs: number | null;
  readonly consumer: {
    readonly kind: "drain" | "slow" | "take" | "failing";
    readonly n: number;
    readonly ms: number;
  };
  readonly outside: ReadonlyArray<{ readonly when: Moment; readonly what: Outside }>;
  /** Answers in turn, the last repeats. `dies`: whoever asks has a defect. */
  readonly answers: ReadonlyArray<{ readonly choice: Choice | "hang" | "dies"; readonly delay: number }>;
  readonly recorder: {
    /** Numbers of the writes that fail, from 0. */
    readonly fails: ReadonlyArray<number>;
    /** Numbers of the writes that die: a defect of the recorder. */
    readonly dies: ReadonlyArray<number>;
    /** How long writes take, in turn, in milliseconds. */
    readonly delays: readonly [number, ...Array<number>];
  };
  /** The caller's own `classify` throws. */
  readonly classifyThrows: boolean;
}

/** Whether somebody here may wait for ever by design: then the run ends only when it is cancelled. */
export const mayHang = (scenario: Scenario): boolean =>
  scenario.options.refresh === "hanging" ||
  scenario.answers.some(({ choice }) => choice === "hang") ||
  scenario.tools.some(({ handler }) => handler === "hanging") ||
  Object.values(scenario.options.clocks).includes(false) ||
  !scenario.options.streaming;
