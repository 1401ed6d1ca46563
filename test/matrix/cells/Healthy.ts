/**
 * Healthy answers that follow a fault.
 */
import { type Answer, type Content, callsOf, type ToolState } from "../Cell.ts";

export const talk: Content = [{ reasoning: 2 }, { text: 3 }];

/** A whole answer, with calls if tools are exposed. */
export const withTools = (tools: ToolState): Answer => ({ content: [...talk, ...callsOf(tools)] });
