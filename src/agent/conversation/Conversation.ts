/**
 * Writes how a conversation opens, in each of the four protocols.
 *
 * `Continuation` writes everything behind it: the model's responses, the results of its calls, and the user's words.
 */

import type * as Json from "../../domain/Json.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** A tool as the model reads of it; `parameters` is a JSON schema. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: Json.JsonRecord;
}

/** What a conversation opens with. */
export interface Opening {
  readonly protocol: ProtocolId;
  readonly model: string;
  readonly system: string;
  readonly tools: ReadonlyArray<ToolDescription>;
}

/** Longest response that is asked for, in tokens, where the protocol has no default (Anthropic Messages). */
export const answerTokensMax = 8_192;

/** The request before the user's first words. */
export const opened = ({ model, protocol, system, tools }: Opening): Json.JsonRecord => {
  switch (protocol) {
    case "openai-chat":
      return {
        model,
        stream: true,
        messages: [{ role: "system", content: system }],
        tools: tools.map((tool) => ({ type: "function", function: { ...tool } })),
      };
    case "openai-responses":
      return {
        model,
        stream: true,
        store: false,
        instructions: system,
        input: [],
        tools: tools.map((tool) => ({ type: "function", ...tool, strict: false })),
      };
    case "anthropic-messages":
      return {
        model,
        stream: true,
        max_tokens: answerTokensMax,
        system,
        messages: [],
        tools: tools.map(({ description, name, parameters }) => ({ name, description, input_schema: parameters })),
      };
    case "google-gemini":
      return {
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
      };
  }
};
