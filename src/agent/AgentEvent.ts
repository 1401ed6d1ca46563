/**
 * Describes what an agent tells whoever watches it. A terminal draws it, a program reads it as JSON.
 */
import type { Choice } from "../domain/Decision.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { Question } from "../recorder/Question.ts";
import type { Verdict } from "./conversation/Entry.ts";

/** What happens while an agent works, in its order. */
export type AgentEvent =
  /** A request begins; `resumed` where an earlier process began it. */
  | { readonly _tag: "StepStarted"; readonly run: string; readonly step: number; readonly resumed: boolean }
  /** The run of an earlier process is still held by its lease. */
  | { readonly _tag: "Waiting"; readonly run: string }
  | { readonly _tag: "AttemptStarted"; readonly attempt: number; readonly mode: AttemptMode }
  | {
      readonly _tag: "Text" | "Reasoning";
      readonly attempt: number;
      readonly ordinal: number;
      readonly text: string;
    }
  /** What this attempt showed after `keep_through` is withdrawn. */
  | { readonly _tag: "Withdrawn"; readonly attempt: number; readonly keep_through: number }
  | { readonly _tag: "Retrying"; readonly mode: AttemptMode; readonly message: string; readonly delay_ms: number }
  | { readonly _tag: "Asked"; readonly question: Question }
  | { readonly _tag: "Answered"; readonly choice: Choice }
  /** A tool's own word on a call that was cut off, or a person's. */
  | { readonly _tag: "Judged"; readonly tool: string; readonly verdict: Verdict }
  | { readonly _tag: "ToolStarted"; readonly tool: string; readonly title: string }
  | { readonly _tag: "ToolEnded"; readonly tool: string; readonly output: string; readonly failed: boolean }
  /** A call that was not run: its attempt was given up, or the run was cancelled. */
  | { readonly _tag: "ToolRefused"; readonly tool: string; readonly message: string }
  | { readonly _tag: "StepEnded"; readonly run: string; readonly attempts: number; readonly finish: string | undefined }
  | TurnEnd;

/**
 * How a turn ended. `done`: the model has answered. `stopped`: it did not, and what it said so far stands in the history.
 * `parked`: a question is open, and the turn goes on once it is answered. `cancelled` by the user. `steps`: the limit of
 * requests was reached.
 */
export interface TurnEnd {
  readonly _tag: "TurnEnded";
  readonly how: "done" | "stopped" | "parked" | "cancelled" | "steps";
  readonly run: string | undefined;
  readonly message: string;
}

/** Told of everything that happens. It must not fail, and what it waits for the agent waits for. */
export type Watcher = (event: AgentEvent) => void;
