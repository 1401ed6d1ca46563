/**
 * Describes one simulated run as plain JSON: the behaviour of the provider, the tools, the consumer, the recorder, the person who is
 * asked and the outside world. The same scenario always plays the same way.
 */
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import type { CallSignal } from "../../src/domain/Observation.ts";
import type { Budget } from "../../src/domain/RunFacts.ts";
import type { Executor, ToolEffect } from "../../src/domain/SideEffects.ts";
import type { ClockOptions } from "../../src/runtime/contract/Clocks.ts";
import type { Edge } from "./Edges.ts";

/** A part that the scripted provider sends. */
export type PartStep =
  | { readonly say: "start" | "ping" | "usage" | "text" | "reasoning" | "terminal" }
  /** The marker is this part followed by a clean end (Gemini). */
  | { readonly say: "terminal_at_end"; readonly text: boolean }
  | {
      readonly say: "call";
      readonly phase: CallSignal["phase"];
      readonly ordinal: number;
      readonly id: string;
      readonly tool: string;
      readonly executor: Executor;
    }
  /** An error event; `terminal` means a finish with malformed content. */
  | { readonly say: "error"; readonly failure: Failure; readonly terminal: boolean };

export type Step =
  | PartStep
  | { readonly chunk: ReadonlyArray<PartStep> }
  | { readonly wait: number }
  /** Waits and cannot be interrupted. */
  | { readonly stubborn: number }
  | { readonly bytes: number }
  | { readonly delivery: Delivery }
  | { readonly fail: Failure }
  | { readonly die: true }
  | { readonly interrupt: true }
  | { readonly never: true };

export interface AttemptScript {
  readonly steps: ReadonlyArray<Step>;
  /** Duration of the source's finalizer, in milliseconds; `hang` never ends. */
  readonly closes: number | "hang";
  /** True if the factory throws instead of returning a stream. */
  readonly factoryThrows: boolean;
}

export interface ToolSpec {
  readonly name: string;
  readonly executor: Executor;
  readonly effect: ToolEffect;
  /** True if ToolGuard makes it. */
  readonly guarded: boolean;
  readonly handler: "fast" | "slow" | "failing" | "dying" | "hanging";
  readonly ms: number;
}

/** Time of an outside event: a virtual time, or the step of the n-th event of a kind. */
export type Moment =
  | { readonly at: number }
  | { readonly on: "event" | "write" | "handler" | "question" | "opened"; readonly nth: number };

/** An action of a person or a program outside. */
export type Outside = "cancel" | "close" | "interrupt" | "signed_user" | "signed_lifecycle";

export interface Scenario {
  readonly seed: number;
  readonly surface: "run" | "parts";
  readonly attempts: ReadonlyArray<AttemptScript>;
  readonly tools: ReadonlyArray<ToolSpec>;
  readonly toolUse: {
    readonly when: "inline" | "background" | "after";
    /** Time between the hand-over and the start, in milliseconds. */
    readonly delay: number;
    /** True if guarded calls are requested twice. */
    readonly twice: boolean;
    /** True if only the provider's id reaches the handler. */
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
  /** In milliseconds; null has no limit. */
  readonly drainMs: number | null;
  readonly consumer: {
    /** `impatient` pulls with a timeout of `ms` and pulls again after it; after `n` pulls it waits without a timeout. */
    readonly kind: "drain" | "slow" | "take" | "failing" | "impatient";
    readonly n: number;
    readonly ms: number;
  };
  readonly outside: ReadonlyArray<{ readonly when: Moment; readonly what: Outside }>;
  /** Answers in turn; the last one repeats. `dies` makes asking a defect. */
  readonly answers: ReadonlyArray<{ readonly choice: Choice | "hang" | "dies"; readonly delay: number }>;
  readonly recorder: {
    /** Numbers of the writes that fail, from 0. */
    readonly fails: ReadonlyArray<number>;
    /** Numbers of the writes that die: a defect of the recorder. */
    readonly dies: ReadonlyArray<number>;
    /** Durations of writes in turn, in milliseconds. */
    readonly delays: readonly [number, ...Array<number>];
  };
  /** True if the caller's own `classify` throws. */
  readonly classifyThrows: boolean;
  readonly world: World;
}

/** Time at which the store goes away; `end` is the first write that ends the run. */
export type StoreMoment = Moment | { readonly on: "end"; readonly nth: number };

/** The recorder's fault at one write. */
export interface WriteFault {
  /** Number of the write, from 0. */
  readonly at: number;
  /**
   * `throw` throws instead of returning an effect; `hang` never returns; `deaf` never returns and cannot be interrupted;
   * `late` commits after eight seconds, even if its caller no longer waits.
   */
  readonly how: "throw" | "hang" | "deaf" | "late";
}

/** A second use of the same id. */
export interface Again {
  /** Uses the same Stream value, another one of the same processor, or one of another processor with the same record. */
  readonly how: "same_stream" | "new_stream" | "new_processor";
  /** A virtual time in milliseconds, or the end of the first run. */
  readonly when: number | "ended";
}

/** Faults of the process and its surroundings besides a broken provider. The first version's world has none of them. */
export interface World {
  readonly faults: ReadonlyArray<WriteFault>;
  /** Periods in which the store neither reads nor writes, in milliseconds. */
  readonly away: ReadonlyArray<{ readonly when: StoreMoment; readonly ms: number }>;
  /** Behaviour of the transcript's digest; `none` gives no transcript. */
  readonly digest: "none" | "ok" | "fails" | "hangs" | "throws";
  readonly again: Again | null;
  readonly edges: ReadonlyArray<Edge>;
  /** Periods in which the process is frozen, in milliseconds by either clock. */
  readonly freezes: ReadonlyArray<{ readonly when: Moment; readonly wall: number; readonly monotonic: number }>;
  /** Virtual time after which nothing fails; null means never. */
  readonly calmAt: number | null;
  /** Further routes of the run, and whether a refused request is its first route's own fault; null means a single route. */
  readonly routes: { readonly further: number; readonly own: boolean } | null;
  /** An outage of the run's path, if any. */
  readonly outage: Outage | null;
  /** The seam of a run: how many parts of a continuation are its anchor, and after how many more it proves wrong. Null means no seam. */
  readonly seam: {
    readonly anchor: number;
    readonly behind: number | null;
    readonly proof: "anchor" | "prefill";
  } | null;
  /** `memory`: the store is lost with the process, so nothing waits for it. `first`: the run is durable. `behind`: it is volatile (L8). */
  readonly record: "memory" | "first" | "behind";
  /** Response time of the fiberless commit; `none` means that the store only has an effect. */
  readonly commit: "none" | "soon" | "late";
}

/** An outage of the run's path: it begins after some refusals and ends later. */
export interface Outage {
  /** Requests that are refused before the outage; the second refusal may already exhaust a budget. */
  readonly refusals: number;
  /** The delay that the refusals announce, in milliseconds; 0 announces none. */
  readonly retryAfterMs: number;
  readonly ms: number;
  /** Requests that are refused after the outage. */
  readonly after: number;
  /** True if a component can probe the path. */
  readonly probes: boolean;
  /** The limits of the run, one of which the refusals may have exhausted. */
  readonly budget: Partial<Budget>;
  /** True if the run belongs to a group. */
  readonly group: boolean;
}

/** A world without faults. */
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
  record: "memory",
  commit: "none",
};

/** Returns true if some part of the scenario may wait forever by design, so that the run ends only when it is cancelled. */
export const mayHang = (scenario: Scenario): boolean => scenario.world.calmAt === null && hangs(scenario);

const hangs = (scenario: Scenario): boolean =>
  scenario.options.refresh === "hanging" ||
  scenario.answers.some(({ choice }) => choice === "hang") ||
  scenario.tools.some(({ handler }) => handler === "hanging") ||
  Object.values(scenario.options.clocks).includes(false) ||
  !scenario.options.streaming ||
  scenario.world.edges.some(({ field }) => field.startsWith("clocks."));
