/**
 * Describes Cohere's protocol: its addresses, and the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer } from "../protocol/Address.ts";
import { endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";

/** The address of `POST /v2/chat`. */
const address: Address = {
  family: "cohere",
  examples: ["/v2/chat"],
  vendor: "https://api.cohere.com",
  path: () => "/v2/chat",
  headers: bearer,
  claim: ({ path }) => (/\/v2\/chat$/.test(path) ? { model: "" } : undefined),
  isRequestBody: ({ messages }) => Array.isArray(messages),
  choices: () => undefined,
  outputTokens: ({ max_tokens }) => Json.natural(max_tokens),
};

/** An empty piece of a plan. The event has a type of the protocol, because some clients fail at unknown types. */
const noOp: NoOp = () => ({
  event: "tool-plan-delta",
  data: { type: "tool-plan-delta", delta: { message: { tool_plan: "" } } },
});

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({ message, ...recoveryCodeField(code) });

/**
 * Ends a stream with an error event. It is never a `message-end` with the reason `ERROR`, because a client that stops at that event could
 * take the response for complete.
 */
const ending: GivenUpForm["ending"] = (message) => endingOf({ event: "error", data: { type: "error", message } });

/** Cohere's wire protocol. */
export const cohereChat = wireProtocol(protocol, {
  name: "Cohere Chat",
  address,
  continuation: { build, turn },
  // No splice writes this protocol's events, so shown text is never continued.
  seamRefusal: () => "no_seam",
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  eventsOf: ({ finish_reason, id, message, usage }) =>
    eventsOf(Json.record(message) ?? {}, { finish_reason, id, usage }),
});

/** Converts a document to the events of an equivalent stream: its content, its calls as begun, and its end. */
const eventsOf = (message: Json.JsonRecord, end: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> => [
  ...Json.list(message.content).map((content, index) => ({
    ...{ type: "content-delta", index },
    delta: { message: { content } },
  })),
  ...Json.list(message.tool_calls).flatMap((tool_calls, index) => [
    { type: "tool-call-start", index, delta: { message: { tool_calls } } },
    { type: "tool-call-end", index },
  ]),
  { type: "message-end", id: end.id, delta: { finish_reason: end.finish_reason, usage: end.usage } },
];
