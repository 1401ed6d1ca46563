/**
 * Lists the kinds of requests that clients send through the gateway (wires), and the treatment of each. docs/gateway.md prints this table,
 * and a test sends its examples.
 *
 * Requests to a model are recognised by their protocols (`RelayPlan`). The paths in this table recognise the others: requests that may be
 * replayed, and requests that are only forwarded.
 */
import { type ProtocolId, protocols, type WireProtocol } from "../../provider/Protocols.ts";

/**
 * Reasons why a POST with a streamed response is not a run. `unknown_path`: this table does not contain the path. `unknown_format`: the
 * gateway has no decoder for the format. `other_api`: the path belongs to an API that is not a model's. `unknown_body`: the path is a
 * model's, but the body is not. `unread_body`: even without its conversation, the body exceeds the limits of an outline.
 */
export const passedReasons = ["unknown_path", "unknown_format", "other_api", "unknown_body", "unread_body"] as const;

/** Reason why a request is passed through unrecovered. */
export type PassedReason = (typeof passedReasons)[number];

/** An example request of a `Wire`. */
export interface WireExample {
  readonly method: "GET" | "POST";
  readonly target: string;
  /** The field of the body that determines the row. */
  readonly body?: { readonly stream: boolean };
}

/** A kind of request, which is a row of the table. */
export interface Wire {
  readonly name: string;
  readonly examples: ReadonlyArray<WireExample>;
  /**
   * `recovered`: a run. `replayed`: a run that may repeat its request, because the request changes nothing at the provider and its response
   * is one document. `passed`: sent once. `refused`: not sent.
   */
  readonly treatment: "recovered" | "replayed" | "passed" | "refused";
  /** Value of `x-recovery-passed` in the responses to these requests, if they are only forwarded and the response streams. */
  readonly reason?: PassedReason;
  readonly note: string;
  /** Matches the end of the path, because proxies and compatible servers add prefixes. Undefined if a protocol recognises the request. */
  readonly path?: RegExp;
  /** Protocol in whose format errors are written. Default: that of the upstream. */
  readonly protocol?: ProtocolId;
}

const post = (target: string, stream?: boolean): WireExample => ({
  method: "POST",
  target,
  ...(stream === undefined ? {} : { body: { stream } }),
});

const get = (target: string): WireExample => ({ method: "GET", target });

/**
 * Examples of a protocol's streaming requests. The body asks for the stream unless the address does, or the protocol's default is to
 * stream.
 */
const examplesOf = ({ address }: WireProtocol): ReadonlyArray<WireExample> =>
  address.examples.map((target) =>
    /:stream|-stream$/.test(target) || address.isStreaming?.({}) === true ? post(target) : post(target, true),
  );

const recovered: ReadonlyArray<Wire> = protocols.ids.map((id) => ({
  name: protocols.get(id).name,
  examples: examplesOf(protocols.get(id)),
  treatment: "recovered",
  note: "",
}));

const untilFirstByte = "until its first byte reaches the client";

const replayed: ReadonlyArray<Wire> = [
  {
    name: "Code Assist token counts",
    examples: [post("/v1internal:countTokens")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/v1internal:countTokens$/,
    protocol: "google-code-assist",
  },
  {
    name: "Embeddings",
    examples: [post("/v1/embeddings")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/embeddings$/,
    protocol: "openai-chat",
  },
  {
    name: "Gemini embeddings and token counts",
    examples: [post("/v1beta/models/M:embedContent"), post("/v1beta/models/M:countTokens")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/models\/[^/]+:(?:embedContent|batchEmbedContents|countTokens)$/,
    protocol: "google-gemini",
  },
  {
    name: "Anthropic token counts",
    examples: [post("/v1/messages/count_tokens")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/messages\/count_tokens$/,
    protocol: "anthropic-messages",
  },
  {
    name: "Responses token counts and compaction",
    examples: [post("/v1/responses/input_tokens"), post("/v1/responses/compact")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/responses\/(?:input_tokens|compact)$/,
    protocol: "openai-responses",
  },
  {
    name: "Bedrock token counts",
    examples: [post("/model/M/count-tokens")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/model\/[^/]+\/count-tokens$/,
    protocol: "bedrock-converse",
  },
  {
    name: "Models",
    examples: [get("/v1/models"), get("/v1/models/M")],
    treatment: "replayed",
    note: untilFirstByte,
    path: /\/models(?:\/[^/:]+)?$/,
  },
];

const passes: ReadonlyArray<Wire> = [
  {
    name: "The account of a Google login",
    examples: [post("/v1internal:loadCodeAssist")],
    treatment: "passed",
    reason: "other_api",
    note: "gemini-cli asks for it before its model requests",
    path: /\/v1internal:\w+$/,
  },
  {
    name: "Gemini as a JSON array",
    examples: [post("/v1beta/models/M:streamGenerateContent")],
    treatment: "passed",
    reason: "unknown_format",
    note: "`alt=sse` is missing, so the response has no events",
    path: /\/models\/[^/]+:\w+$/,
  },
  {
    name: "Anthropic's text completions",
    examples: [post("/v1/complete", true)],
    treatment: "passed",
    reason: "unknown_format",
    note: "",
    path: /\/complete$/,
  },
  {
    name: "Cohere's first API",
    examples: [post("/v1/chat", true)],
    treatment: "passed",
    reason: "unknown_format",
    note: "",
    path: /\/v1\/chat$/,
  },
  {
    name: "A stored response",
    examples: [get("/v1/responses/ID?stream=true&starting_after=7")],
    treatment: "passed",
    note: "read with GET. A streaming POST with `background: true` is recovered by its cursor and never sent twice",
  },
  {
    name: "A stored interaction of Gemini",
    examples: [get("/v1beta/interactions/ID?stream=true&last_event_id=E")],
    treatment: "passed",
    note: "read with GET. A streaming POST with `background: true` is recovered by `last_event_id` and never sent twice",
  },
  {
    name: "Audio, images, videos, files, batches, threads",
    examples: [post("/v1/audio/speech"), post("/v1/images/generations", true), post("/v1/files")],
    treatment: "passed",
    reason: "other_api",
    note: "",
    path: /\/v1\/(?:audio|images|videos|files|uploads|batches|threads|realtime)(?:\/[^/]+)*$/,
  },
  {
    name: "MCP and A2A",
    examples: [post("/mcp"), post("/a2a")],
    treatment: "passed",
    reason: "other_api",
    note: "",
    path: /\/(?:mcp|a2a)$/,
  },
  {
    name: "Any other path",
    examples: [post("/v1/other", true)],
    treatment: "passed",
    reason: "unknown_path",
    note: "",
  },
];

const upgrades: Wire = {
  name: "WebSocket: Responses, Realtime, Gemini Live",
  examples: [get("/v1/responses"), get("/v1/realtime")],
  treatment: "refused",
  note: "with 426 for every upgrade; clients of Responses fall back to HTTP",
};

/** All rows of the table. */
export const wires: ReadonlyArray<Wire> = [...recovered, ...replayed, ...passes, upgrades];

/**
 * Finds the row of a request whose response is a document and which changes nothing at the provider.
 *
 * @param path path without trailing slashes
 */
export const replayedWire = (method: string, path: string): Wire | undefined =>
  replayed.find((wire) => wire.examples[0]?.method === method && wire.path?.test(path) === true);

/**
 * Returns the reason why a POST is only forwarded, by its path.
 *
 * @param path path without trailing slashes
 */
export const passThroughReason = (path: string): PassedReason =>
  passes.find((wire) => wire.path?.test(path) === true)?.reason ?? "unknown_path";
