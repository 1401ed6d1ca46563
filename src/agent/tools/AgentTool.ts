/**
 * Describes a tool of the agent: what the model reads of it, what it does, and how it can tell afterwards whether a call ran.
 */
import type { Effect } from "effect";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { StartedCall } from "../conversation/ChatRun.ts";
import type { ToolDescription } from "../conversation/Conversation.ts";
import type { CallVerdict } from "../conversation/Entry.ts";

/** What a tool says to the model, and whether it is a failure. */
export interface ToolOutput {
  readonly output: string;
  readonly failed: boolean;
}

/** A tool before it is guarded. */
export interface AgentTool extends ToolDescription {
  readonly effect: ToolEffect;
  /**
   * Notes what the tool will need to tell whether a call happened; the note is in the journal before the call begins.
   *
   * @param input the argument text of the model
   */
  readonly before?: (input: string) => string | undefined;
  /** Runs a call. */
  readonly run: (input: string) => Effect.Effect<ToolOutput>;
  /** Says whether a call happened that began and was cut off; `unknown` where the tool cannot tell. It changes nothing. */
  readonly verify?: (call: StartedCall) => CallVerdict | "unknown";
  /** What a person sees of a call, in one line. */
  readonly title: (input: string) => string;
}
