/**
 * Writes the requests of the four protocols: how a conversation opens, and how a user's message is added.
 *
 * Everything between the two is written by `Continuation.build`: the answers of a model and the results of its calls.
 */

import * as Json from "../domain/Json.ts";
import * as Continuation from "../provider/Continuation.ts";
import type { ProtocolId } from "../provider/Protocol.ts";

/** What a model is told of a tool; `parameters` is a JSON schema. */
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

/** Longest answer that is asked for, in tokens, where the protocol has no default (Anthropic Messages). */
export const answerTokensMax = 8_192;

/** The request before anybody has said anything. */
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

/** Where a protocol keeps its messages, and how it writes text in them. */
const forms = {
  "openai-chat": { list: "messages", content: "content", part: (text: string): unknown => text },
  "openai-responses": { list: "input", content: "content", part: (text: string): unknown => text },
  "anthropic-messages": {
    list: "messages",
    content: "content",
    part: (text: string): unknown => ({ type: "text", text }),
  },
  "google-gemini": { list: "contents", content: "parts", part: (text: string): unknown => ({ text }) },
} as const;

/**
 * Adds what the user says. Where the last answer was about to be gone on with, the user's words take the place of that.
 *
 * @param body the request so far
 */
export const said = (protocol: ProtocolId, body: Json.JsonRecord, text: string): Json.JsonRecord => {
  const form = forms[protocol];
  const messages = Json.list(body[form.list]);
  const last = Json.record(messages.at(-1));
  const before = last?.[form.content];
  const parts = Array.isArray(before) ? before : [];
  const open = Array.isArray(before) ? Json.string(Json.record(before.at(-1))?.text) : Json.string(before);
  if (last !== undefined && last.role === "user" && open.endsWith(Continuation.goOn)) {
    const words = [open.slice(0, -Continuation.goOn.length).trim(), text].filter((it) => it !== "").join("\n\n");
    const content = Array.isArray(before) ? parts.with(-1, form.part(words)) : words;
    return { ...body, [form.list]: messages.with(-1, { ...last, [form.content]: content }) };
  }
  // Two messages of the user's in a row are refused by some servers: they become one.
  if (last?.role === "user") {
    const content = Array.isArray(before) ? [...parts, form.part(text)] : `${open}\n\n${text}`;
    return { ...body, [form.list]: messages.with(-1, { ...last, [form.content]: content }) };
  }
  const part = form.part(text);
  const message = { role: "user", [form.content]: typeof part === "string" ? part : [part] };
  return { ...body, [form.list]: [...messages, message] };
};
