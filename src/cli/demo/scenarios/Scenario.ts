/**
 * Describes one run of the demo: the provider's behaviour, the caller's permissions, and the expected outcome.
 */
import type { Choice } from "../../../domain/Decision.ts";
import type { SeamProof, SeamRefusal } from "../../../domain/SeamWords.ts";
import type { ToolEffect } from "../../../domain/SideEffects.ts";
import type { ProtocolId } from "../../../provider/Protocols.ts";
import type { ClockOptions } from "../../../runtime/contract/Clocks.ts";
import type { FaultScriptInput } from "../../../testing/script/FaultScript.ts";
import type { GoesOn } from "../stage/TextJoiner.ts";

/** The responses of a fault script, before defaults are filled in. */
export type Answers = NonNullable<FaultScriptInput["answers"]>;

/**
 * A tool in the request. Its handler appends its input to a list for the judge. `at_once`: the caller runs a call when the call is handed
 * over. `at_end`: it runs the call after the run has completed.
 */
export interface DemoTool {
  readonly name: string;
  readonly effect: ToolEffect;
  readonly guarded: boolean;
  readonly runs: "at_once" | "at_end";
}

/** The outcome as a person at the screen sees it, in the words of the table. */
export type Saw =
  | "whole answer"
  | "draft, then whole"
  | "whole, continued"
  | "partial, asked"
  | "no text, asked"
  | "partial, stopped"
  | "provider's error";

/** The connection of an attempt: kept open by an earlier request, newly opened, or opened because an idle one was closed. */
export type ConnectionUse = "kept" | "fresh" | "recycled";

/** The expected outcome of a run, written by hand. */
export interface Expectation {
  readonly saw: Saw;
  /** Every decision in order, as `action rule`. Empty if nothing breaks. */
  readonly decisions: ReadonlyArray<string>;
  readonly attempts: number;
  /** Number of requests that the server counts: one less than the attempts if the first address refuses connections. */
  readonly requests: number;
  /** Number of tool handler runs. */
  readonly toolRuns: number;
  /** The connection of every attempt, if it matters: kept, fresh, or recycled because the previous connection was idle too long. */
  readonly connections?: ReadonlyArray<ConnectionUse>;
  /** Reasons for which the run is expected to wait before a request, each once and in order. Default: none. */
  readonly waits?: ReadonlyArray<"path" | "cooldown">;
  /** The route that answers. Default: the first route of the run. */
  readonly route?: string;
  /** The proof of each seam, or the reason why shown text is not continued. Default: neither. */
  readonly seams?: ReadonlyArray<SeamProof | SeamRefusal>;
}

/** One run of the demo. */
export interface Scenario {
  /** Unique name for `--only`. */
  readonly name: string;
  /** Label for the table, at most `faultCharactersMax` characters. */
  readonly fault: string;
  readonly protocol: ProtocolId;
  readonly answers: Answers;
  readonly tools?: ReadonlyArray<DemoTool>;
  readonly reveal?: "live" | "on_complete";
  readonly canContinue?: boolean;
  /** Continues shown text if it can be proven where the continuation joins that text (the seam). */
  readonly goesOn?: GoesOn;
  readonly canRefresh?: boolean;
  readonly clocks?: ClockOptions;
  /** The person's answer to every question. Default: `stop`. */
  readonly answer?: Choice;
  /** Number of shown text deltas after which the user cancels the run. */
  readonly cancelAfter?: number;
  /**
   * Number of shown text deltas after which the caller leaves. The caller attaches to its run again after the provider has sent everything.
   */
  readonly leavesAfter?: number;
  /** Sends the first attempt to a port without a listener. */
  readonly refusedFirst?: boolean;
  /**
   * Sends a healthy request over the connection before the run. `kept`: the run starts while that connection is open. `recycled`: the run
   * starts after the client has closed the connection, after `STREAM_RECOVERY_KEEPALIVE_MS` or `recycledMs`.
   */
  readonly warmUp?: "kept" | "recycled";
  /** Length of an outage that starts before the run, in milliseconds. The provider was reached before the outage. */
  readonly outageMs?: number;
  /** Starts another run with the same credential and model first. That run receives the first response and is then stopped. */
  readonly sibling?: boolean;
  /** Length of the machine's sleep after the first part of the response, in milliseconds. */
  readonly sleepsMs?: number;
  /** The name of the run's second route. */
  readonly secondRoute?: string;
  readonly expect: Expectation;
}

/** Default idle time before the demo recycles a connection, in milliseconds, if the environment sets none. */
export const recycledMs = 150;

/** Maximum length of `fault` in the table. */
export const faultCharactersMax = 29;

/** A guarded tool with side effects. */
export const guarded: DemoTool = { name: "bash", effect: "mutating", guarded: true, runs: "at_end" };

/** The same tool without a guard, so nothing is proven about its calls. */
export const unguarded: DemoTool = { ...guarded, guarded: false };

/** The expectation of a complete response after one silent retry. */
export const silentRetry = (rule: string, more: Partial<Expectation> = {}): Expectation => ({
  saw: "whole answer",
  decisions: [`auto_retry_once ${rule}`],
  attempts: 2,
  requests: 2,
  toolRuns: 0,
  ...more,
});

/** The expectation of shown text that is continued once, at one seam. */
export const continuation = (by: SeamProof): Expectation =>
  silentRetry("continue_text", { saw: "whole, continued", seams: [by] });

/** The expectation of a run that ends with its first attempt. */
export const singleAttempt = (saw: Saw, decision: string, more: Partial<Expectation> = {}): Expectation => ({
  saw,
  decisions: [decision],
  attempts: 1,
  requests: 1,
  toolRuns: 0,
  ...more,
});
