/**
 * Writes how a conversation opens in OpenAI Responses. Nothing is stored.
 */
import type * as Json from "../../domain/Json.ts";
import type { Opening } from "../protocol/Opening.ts";

/** The request before the user's first words. */
export const opened = ({ model, system, tools }: Opening): Json.JsonRecord => ({
  model,
  stream: true,
  store: false,
  instructions: system,
  input: [],
  tools: tools.map((tool) => ({ type: "function", ...tool, strict: false })),
});
