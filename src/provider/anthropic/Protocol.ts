/**
 * Describes the Anthropic Messages protocol: its addresses, the requests whose responses cannot be continued, and
 * the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, type Claim, choicesByN, type Target } from "../protocol/Address.ts";
import {
  documentType,
  endingOf,
  type GivenUpForm,
  type NoOp,
  recoveryCodeField,
  type StreamEvent,
} from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import * as Refusals from "../seam/Refusals.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { splice } from "./Splice.ts";

/** The API version that this folder reads and writes. */
const version = { "anthropic-version": "2023-06-01" };

/** Accepts Anthropic's own path, other `/messages` paths whose requests have the header of its API, and Claude on Vertex AI. */
const claim = ({ has, path }: Target): Claim | undefined => {
  if (path.endsWith("/v1/messages") || (path.endsWith("/messages") && has("anthropic-version"))) return { model: "" };
  const model = /\/models\/([^/]+):(?:streamRawPredict|rawPredict)$/.exec(path)?.[1];
  return model === undefined ? undefined : { model };
};

/** The address of `POST …/messages`. */
const address: Address = {
  family: "anthropic",
  examples: ["/v1/messages"],
  vendor: "https://api.anthropic.com/v1",
  path: () => "/messages",
  headers: (key) => ({ ...version, ...(key === undefined ? {} : { "x-api-key": key }) }),
  claim,
  isRequestBody: (body) => Array.isArray(body.messages),
  choices: choicesByN,
  outputTokens: ({ max_tokens }) => Json.natural(max_tokens),
};

/**
 * A ping as Anthropic sends it. All clients ignore it.
 *
 * This package writes only event types of the Messages API, because the AI SDK's provider fails on any other type before `message_start`.
 * Measured on 2026-11-22 with claude-code, opencode, copilot, pi and three SDKs.
 */
const noOp: NoOp = () => ({ event: "ping", data: { type: "ping" } });

/** The error type that keeps clients from retrying. They retry `overloaded_error` four times. */
const type = "invalid_request_error";

const errorData = (message: string) => ({ type: "error", error: { type, message } });

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({
  type: "error",
  error: { type: documentType, message, ...recoveryCodeField(code) },
});

/**
 * Ends a stream with an error event. If no event was sent, a `message_start` precedes it, because opencode retries if the error is the
 * first event.
 */
const ending: GivenUpForm["ending"] = (message, last, run) =>
  endingOf(...(last === undefined ? [messageStart(run)] : []), { event: "error", data: errorData(message) });

const messageStart = ({ id, model }: Parameters<NoOp>[1]): StreamEvent => ({
  event: "message_start",
  data: {
    type: "message_start",
    message: {
      id,
      type: "message",
      role: "assistant",
      model: model ?? "",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    },
  },
});

/**
 * Requests that rule out continuing their response.
 *
 * Before `output_config.format`, a schema was requested by a forced tool. The text next to such a call is not an answer to continue.
 * `container` and `mcp_servers` are allowed, because they act in a response only through calls, and the splice refuses to continue after a
 * call that was sent.
 */
const seamRefusals: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "structured_output",
    ({ output_config, output_format }) =>
      Refusals.isStructured(Json.record(output_config)?.format) || Refusals.isStructured(output_format),
  ],
  ["several_choices", ({ n }) => Refusals.isSeveral(n)],
  ["forced_tool", ({ tool_choice }) => Refusals.isCallDemanded(tool_choice)],
];

const eventsOf = (message: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> => [
  { type: "message_start", message: { ...message, content: [] } },
  ...Json.list(message.content).flatMap((content_block, index) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ]),
  { type: "message_delta", delta: { stop_reason: message.stop_reason }, usage: message.usage },
  { type: "message_stop" },
];

/** The Anthropic Messages wire protocol. */
export const anthropicMessages = wireProtocol(protocol, {
  name: "Anthropic Messages",
  address,
  continuation: { build, turn },
  seamRefusal: (body) => Refusals.refusalOf(seamRefusals, body),
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  eventsOf,
  usage: { cachedApart: true, reasoningApart: false },
  splice,
});
