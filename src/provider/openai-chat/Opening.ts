/**
 * Writes how a conversation opens in OpenAI Chat Completions.
 */
import type * as Json from "../../domain/Json.ts";
import type { Opening } from "../protocol/Opening.ts";

/** The request before the user's first words. */
export const opened = ({ model, system, tools }: Opening): Json.JsonRecord => ({
  model,
  stream: true,
  messages: [{ role: "system", content: system }],
  tools: tools.map((tool) => ({ type: "function", function: { ...tool } })),
});
