/**
 * Writes how a conversation opens in Anthropic Messages.
 */
import type * as Json from "../../domain/Json.ts";
import type { Opening } from "../protocol/Opening.ts";

/** Longest response that is asked for, in tokens: the protocol has no default. */
const answerTokensMax = 8_192;

/** The request before the user's first words. */
export const opened = ({ model, system, tools }: Opening): Json.JsonRecord => ({
  model,
  stream: true,
  max_tokens: answerTokensMax,
  system,
  messages: [],
  tools: tools.map(({ description, name, parameters }) => ({ name, description, input_schema: parameters })),
});
