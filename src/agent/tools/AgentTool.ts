/**
 * Describes a tool of the agent: what the model is told of it, what it does, and how it can tell afterwards whether it did.
 */
import type { Effect } from "effect";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { Called } from "../conversation/ChatRun.ts";
import type { ToolDescription } from "../conversation/Conversation.ts";
import type { Verdict } from "../conversation/Entry.ts";

/** What a tool says to the model. A failure is an answer too: the model is told that it is one. */
export interface ToolOutput {
  readonly output: string;
  readonly failed: boolean;
}

/** A tool before it is guarded. */
export interface AgentTool extends ToolDescription {
  readonly effect: ToolEffect;
  /**
   * Notes what will be needed to tell whether a call happened; it stands in the journal before the call begins.
   *
   * @param input the argument text of the model
   */
  readonly before?: (input: string) => string | undefined;
  /** Does a call. */
  readonly run: (input: string) => Effect.Effect<ToolOutput>;
  /** Says whether a call happened that began and was cut off; `unknown` where that cannot be told. It changes nothing. */
  readonly verify?: (call: Called) => Verdict | "unknown";
  /** What a person sees of a call, in one line. */
  readonly title: (input: string) => string;
}
