/**
 * Describes Mistral's conversations: their addresses, and the events that this package itself writes.
 *
 * OpenAI has the same path for a conversation without a response. Its bodies have no `inputs`.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer, type Keeping } from "../protocol/Address.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";

/**
 * A conversation grows with each of its requests, and Mistral stores it unless the request says otherwise. A request that may have arrived
 * is therefore never repeated, because the conversation could then contain it twice.
 */
const keepingOf = ({ store }: Json.JsonRecord): Keeping => (store === false ? "nothing" : "conversation");

/** The addresses of `POST /v1/conversations`, and of the requests that continue or restart one. */
const address: Address = {
  family: "openai",
  examples: ["/v1/conversations", "/v1/conversations/ID", "/v1/conversations/ID/restart"],
  vendor: "https://api.mistral.ai/v1",
  path: () => "/conversations",
  headers: bearer,
  claim: ({ path }) => (/\/conversations(?:\/[^/]+(?:\/restart)?)?$/.test(path) ? { model: "" } : undefined),
  isRequestBody: ({ inputs }) => inputs !== undefined,
  choices: () => undefined,
  outputTokens: ({ completion_args }) => Json.natural(Json.record(completion_args)?.max_tokens),
  keeping: keepingOf,
};

/** A message without text. Every client joins it to the message that it belongs to. */
const noOp: NoOp = (last) => ({
  event: "message.output.delta",
  data: {
    type: "message.output.delta",
    ...{ output_index: Json.natural(last?.output_index) ?? 0, content_index: Json.natural(last?.content_index) ?? 0 },
    ...{ id: Json.string(last?.id), role: "assistant", content: "" },
  },
});

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({
  ...{ object: "error", message, type: documentType, param: null, code: documentType },
  ...recoveryCodeField(code),
});

/** Ends a stream with Mistral's own error event. Its code is a status that no client retries. */
const ending: GivenUpForm["ending"] = (message) =>
  endingOf({
    event: "conversation.response.error",
    data: { type: "conversation.response.error", message, code: 400 },
  });

/** The wire protocol of Mistral's conversations. */
export const mistralConversations = wireProtocol(protocol, {
  name: "Mistral Conversations",
  address,
  continuation: { build, turn },
  // No splice writes this protocol's events, so shown text is never continued.
  seamRefusal: () => "no_seam",
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  eventsOf: ({ outputs, usage }) => [
    ...Json.list(outputs).flatMap((entry, index) => eventsOf(Json.record(entry) ?? {}, index)),
    ...(outputs === undefined ? [] : [{ type: "conversation.response.done", usage }]),
  ],
});

/** Converts an entry of a document to the events of an equivalent stream. */
const eventsOf = (entry: Json.JsonRecord, output_index: number): ReadonlyArray<Json.JsonRecord> => {
  const own = { ...entry, id: Json.string(entry.id) || `entry ${output_index}`, output_index };
  switch (entry.type) {
    case "message.output": {
      const contents: ReadonlyArray<unknown> = Array.isArray(entry.content) ? entry.content : [entry.content];
      return contents.map((content) => ({ ...own, type: "message.output.delta", content }));
    }
    case "function.call":
      return [{ ...own, type: "function.call.delta" }];
    case "tool.execution":
      return [
        { ...own, type: "tool.execution.started" },
        { ...own, type: "tool.execution.done" },
      ];
    default:
      return [];
  }
};
