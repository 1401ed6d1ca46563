/**
 * Describes one run of the demo: what the provider does, what the caller allows, and what must come of it.
 */
import type { Choice } from "../../../domain/Decision.ts";
import type { SeamProof, SeamRefusal } from "../../../domain/SeamWords.ts";
import type { ToolEffect } from "../../../domain/SideEffects.ts";
import type { ProtocolId } from "../../../provider/Protocols.ts";
import type { ClockOptions } from "../../../runtime/contract/Clocks.ts";
import type { FaultScriptInput } from "../../../testing/script/FaultScript.ts";
import type { GoesOn } from "../stage/TextJoiner.ts";

/** The responses of a fault script, before their defaults are filled in. */
export type Answers = NonNullable<FaultScriptInput["answers"]>;

/**
 * A tool that the request exposes. Its handler writes its input to a list, which the judge reads. `at_once`: the caller runs a
 * call when it is handed over; `at_end`: when the run has completed.
 */
export interface DemoTool {
  readonly name: string;
  readonly effect: ToolEffect;
  readonly guarded: boolean;
  readonly runs: "at_once" | "at_end";
}

/** What a person in front of the screen saw, in the words of the table. */
export type Saw =
  | "whole answer"
  | "draft, then whole"
  | "whole, continued"
  | "partial, asked"
  | "no text, asked"
  | "partial, stopped"
  | "provider's error";

/** How an attempt came by its connection. */
export type ConnectionUse = "kept" | "fresh" | "recycled";

/** What must come of a run, written by hand. */
export interface Expectation {
  readonly saw: Saw;
  /** Every decision in order, as `action rule`. Empty: nothing broke. */
  readonly decisions: ReadonlyArray<string>;
  readonly attempts: number;
  /** Requests that the server counts. Where the first address refuses connections, one less than attempts. */
  readonly requests: number;
  /** How often tool handlers run. */
  readonly toolRuns: number;
  /** Where it matters, the connection of every attempt: a kept one, a fresh one, or a fresh one as the last had idled too long. */
  readonly connections?: ReadonlyArray<ConnectionUse>;
  /** What the run waited for before it sent, each once, in order. Left out: nothing. */
  readonly waits?: ReadonlyArray<"path" | "cooldown">;
  /** The route that answered; left out: the run's own. */
  readonly route?: string;
  /** What proved each seam, or why text that was shown did not go on; left out: nothing of it. */
  readonly seams?: ReadonlyArray<SeamProof | SeamRefusal>;
}

/** One run of the demo. */
export interface Scenario {
  /** Unique, for `--only`. */
  readonly name: string;
  /** For the table, at most `faultCharactersMax` characters. */
  readonly fault: string;
  readonly protocol: ProtocolId;
  readonly answers: Answers;
  readonly tools?: ReadonlyArray<DemoTool>;
  readonly reveal?: "live" | "on_complete";
  readonly canContinue?: boolean;
  /** Text that was shown goes on, where the seam is proven. */
  readonly goesOn?: GoesOn;
  readonly canRefresh?: boolean;
  readonly clocks?: ClockOptions;
  /** What the person answers to every question; left out: `stop`. */
  readonly answer?: Choice;
  /** The user cancels when this many text deltas have been shown. */
  readonly cancelAfter?: number;
  /**
   * The caller goes away when this many text deltas have been shown, and is attached to its run again once the provider has sent all of
   * it.
   */
  readonly leavesAfter?: number;
  /** The first attempt goes to a port where no server listens. */
  readonly refusedFirst?: boolean;
  /**
   * A healthy request goes over the connection before the run begins. `kept`: the run meets that connection. `recycled`: the
   * run begins when the client has closed it, after `STREAM_RECOVERY_KEEPALIVE_MS` or `recycledMs`.
   */
  readonly warmUp?: "kept" | "recycled";
  /** The way to the provider goes away before the run begins and is back after so many milliseconds. It was reached before. */
  readonly outageMs?: number;
  /** Another run of the same credential and model begins first, and hears the first answer; it is given up there. */
  readonly sibling?: boolean;
  /** The machine sleeps for so many milliseconds behind the first part of the answer. */
  readonly sleepsMs?: number;
  /** The run has a second route, by this name. */
  readonly secondRoute?: string;
  readonly expect: Expectation;
}

/** How long a connection idles before it is recycled in the demo, in milliseconds, where the environment does not say. */
export const recycledMs = 150;

/** Longest `fault` that fits into the table. */
export const faultCharactersMax = 29;

/** A tool that changes something, behind the guard. */
export const guarded: DemoTool = { name: "bash", effect: "mutating", guarded: true, runs: "at_end" };

/** The same tool as a plain boundary, which proves nothing. */
export const unguarded: DemoTool = { ...guarded, guarded: false };

/** A scenario's expectation where the response comes whole after one silent retry. */
export const recovered = (rule: string, more: Partial<Expectation> = {}): Expectation => ({
  saw: "whole answer",
  decisions: [`auto_retry_once ${rule}`],
  attempts: 2,
  requests: 2,
  toolRuns: 0,
  ...more,
});

/** A scenario's expectation where the shown text goes on behind one seam. */
export const joined = (by: SeamProof): Expectation =>
  recovered("continue_text", { saw: "whole, continued", seams: [by] });

/** A scenario's expectation where the first attempt ends the run. */
export const ended = (saw: Saw, decision: string, more: Partial<Expectation> = {}): Expectation => ({
  saw,
  decisions: [decision],
  attempts: 1,
  requests: 1,
  toolRuns: 0,
  ...more,
});
