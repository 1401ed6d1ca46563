/**
 * Describes the events of an agent. A terminal draws them, a program reads them as JSON.
 */
import type { Choice } from "../domain/Decision.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { Question } from "../recorder/Question.ts";
import type { CallVerdict } from "./conversation/Entry.ts";

/** What happens while an agent works, in order. */
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
  /** The parts that this attempt showed after `keep_through` are withdrawn. */
  | { readonly _tag: "Withdrawn"; readonly attempt: number; readonly keep_through: number }
  | { readonly _tag: "Retrying"; readonly mode: AttemptMode; readonly message: string; readonly delay_ms: number }
  | { readonly _tag: "Asked"; readonly question: Question }
  | { readonly _tag: "Answered"; readonly choice: Choice }
  /** A tool, or a person, has said whether a call happened that was cut off. */
  | { readonly _tag: "Judged"; readonly tool: string; readonly verdict: CallVerdict }
  | { readonly _tag: "ToolStarted"; readonly tool: string; readonly title: string }
  | { readonly _tag: "ToolEnded"; readonly tool: string; readonly output: string; readonly failed: boolean }
  /** A call that was not run: its attempt was given up, or the run was cancelled. */
  | { readonly _tag: "ToolRefused"; readonly tool: string; readonly message: string }
  | { readonly _tag: "StepEnded"; readonly run: string; readonly attempts: number; readonly finish: string | undefined }
  | TurnEnd;

/**
 * How a turn ended. `done`: the model's response is whole. `stopped`: it is not, and its kept parts stand in the history.
 * `parked`: a question is open, and the turn goes on once it is answered. `cancelled` by the user. `steps`: the limit of
 * requests was reached.
 */
export interface TurnEnd {
  readonly _tag: "TurnEnded";
  readonly how: "done" | "stopped" | "parked" | "cancelled" | "steps";
  readonly run: string | undefined;
  readonly message: string;
}

/** Called with every event. It must not throw, and the agent waits until it returns. */
export type Watcher = (event: AgentEvent) => void;
