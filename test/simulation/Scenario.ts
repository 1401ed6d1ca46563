/**
 * Describes one simulated run as plain JSON: what the provider, the tools, the consumer, the recorder, the person who is
 * asked and the world outside do. The same scenario always plays the same way.
 */
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import type { CallSignal } from "../../src/domain/Observation.ts";
import type { Budget } from "../../src/domain/RunFacts.ts";
import type { Executor, ToolEffect } from "../../src/domain/SideEffects.ts";
import type { ClockOptions } from "../../src/runtime/contract/Clocks.ts";
import type { Edge } from "./Edges.ts";

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

/** What a person or a program does from outside. */
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
    /** `impatient` pulls with a timeout of `ms`, leaves the pull and comes back; after `n` pulls it waits. */
    readonly kind: "drain" | "slow" | "take" | "failing" | "impatient";
    readonly n: number;
    readonly ms: number;
  };
  readonly outside: ReadonlyArray<{ readonly when: Moment; readonly what: Outside }>;
  /** Answers in turn, the last repeats. `dies`: asking is a defect. */
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
  readonly world: World;
}

/** When the store goes: `end` is the first write that ends the run. */
export type StoreMoment = Moment | { readonly on: "end"; readonly nth: number };

/** How the recorder is at one write. */
export interface WriteFault {
  /** Number of the write, from 0. */
  readonly at: number;
  /**
   * `throw` throws instead of giving an effect; `hang` never comes back; `deaf` never comes back and cannot be interrupted;
   * `late` commits after eight seconds, whether or not a caller still waits for it.
   */
  readonly how: "throw" | "hang" | "deaf" | "late";
}

/** The same id once more. */
export interface Again {
  /** The same Stream value, another one of the same processor, or one of another processor on the same record. */
  readonly how: "same_stream" | "new_stream" | "new_processor";
  /** Virtual milliseconds, or once the first run has ended. */
  readonly when: number | "ended";
}

/** What the process and its surroundings suffer besides a broken provider. All empty is the world of the first version. */
export interface World {
  readonly faults: ReadonlyArray<WriteFault>;
  /** The store takes and gives nothing for so many milliseconds. */
  readonly away: ReadonlyArray<{ readonly when: StoreMoment; readonly ms: number }>;
  /** How the digest of the transcript is made; `none` gives no transcript. */
  readonly digest: "none" | "ok" | "fails" | "hangs" | "throws";
  readonly again: Again | null;
  readonly edges: ReadonlyArray<Edge>;
  /** The process stands still for so long by either clock: nothing of it runs meanwhile. */
  readonly freezes: ReadonlyArray<{ readonly when: Moment; readonly wall: number; readonly monotonic: number }>;
  /** From this virtual millisecond on nothing fails any more; null is never. */
  readonly calmAt: number | null;
  /** Further routes of the run, and whether the first one refuses what is its own; null where it has one route alone. */
  readonly routes: { readonly further: number; readonly own: boolean } | null;
  /** An outage of the run's path; null is none. */
  readonly outage: Outage | null;
  /** What joins texts: how many parts of a continuation are the anchor, and behind how many more it is found to be wrong; null: nothing does. */
  readonly seam: {
    readonly anchor: number;
    readonly behind: number | null;
    readonly proof: "anchor" | "prefill";
  } | null;
}

/** The path of the run goes away after some refusals, and comes back. */
export interface Outage {
  /** Requests that are refused before it: by the second one a budget may be spent. */
  readonly refusals: number;
  /** Whether the refusals say how long to wait, in milliseconds; 0 says nothing. */
  readonly retryAfterMs: number;
  readonly ms: number;
  /** Requests that are refused after it. */
  readonly after: number;
  /** Whether a component can probe the path. */
  readonly probes: boolean;
  /** The limits of the run, of which the refusals may have spent one. */
  readonly budget: Partial<Budget>;
  /** The run belongs to a group. */
  readonly group: boolean;
}

/** A world without faults of its own. */
export const plainWorld: World = {
  faults: [],
  away: [],
  digest: "none",
  again: null,
  edges: [],
  freezes: [],
  calmAt: null,
  routes: null,
  seam: null,
  outage: null,
};

/** Whether a part of the scenario may wait for ever by design: then the run ends only when it is cancelled. */
export const mayHang = (scenario: Scenario): boolean => scenario.world.calmAt === null && hangs(scenario);

const hangs = (scenario: Scenario): boolean =>
  scenario.options.refresh === "hanging" ||
  scenario.answers.some(({ choice }) => choice === "hang") ||
  scenario.tools.some(({ handler }) => handler === "hanging") ||
  Object.values(scenario.options.clocks).includes(false) ||
  !scenario.options.streaming ||
  scenario.world.edges.some(({ field }) => field.startsWith("clocks."));
