/**
 * Writes how a conversation opens in Gemini. The model stands in the address.
 */
import type * as Json from "../../domain/Json.ts";
import type { Opening } from "../protocol/Opening.ts";

/** The request before the user's first words. */
export const opened = ({ system, tools }: Opening): Json.JsonRecord => ({
  systemInstruction: { parts: [{ text: system }] },
  contents: [],
  tools: [
    {
      functionDeclarations: tools.map(({ description, name, parameters }) => ({
        name,
        description,
        parametersJsonSchema: parameters,
      })),
    },
  ],
});
