/**
 * Error answers with a status, and as an event of a stream that began well, each in the dialect of the client that reads it.
 */
import type { Client, Provoked } from "./clients/Client.ts";
import { provoke } from "./clients/Client.ts";
import { type Fault, firstEvent, streamed } from "./Faults.ts";
import { withServer } from "./Servers.ts";

/** An error in the terms of each dialect: OpenAI's code, Anthropic's type, the gateway's type. */
interface Said {
  readonly openai: readonly [type: string, code: string | null];
  readonly anthropic: string;
  readonly gateway: string;
  readonly message: string;
}

const json = (client: Client, { openai: [type, code], anthropic, gateway, message }: Said): string => {
  switch (client.protocol) {
    case "anthropic-messages":
      return JSON.stringify({ type: "error", error: { type: anthropic, message } });
    case "ai-gateway":
      return JSON.stringify({ error: { message, type: gateway, param: null, code: null } });
    default:
      return JSON.stringify({ error: { message, type, param: null, code } });
  }
};

const page = "<html><head><title>Error</title></head><body><h1>Error</h1><hr>cloudflare</body></html>";

const respond = (status: number, type: string, body: string, headers: ReadonlyArray<string>): string =>
  [
    `HTTP/1.1 ${status} Error`,
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    ...headers,
    "",
    body,
  ].join("\r\n");

const answering = (client: Client, bytes: string): Promise<Provoked> =>
  withServer(
    (socket) => void socket.end(bytes),
    {},
    (port) => provoke(client, { url: `http://127.0.0.1:${port}/` }),
  );

const inJson = (status: number, name: string, said: Said, headers: ReadonlyArray<string> = []): Fault => ({
  name: `${status} ${name}`,
  run: (client) => answering(client, respond(status, "application/json", json(client, said), headers)),
});

const inHtml = (status: number): Fault => ({
  name: `${status} HTML`,
  run: (client) => answering(client, respond(status, "text/html", page, [])),
});

const invalid = (openai: string | null, message: string): Said => ({
  openai: ["invalid_request_error", openai],
  anthropic: "invalid_request_error",
  gateway: "invalid_request_error",
  message,
});

const failed: Said = {
  openai: ["server_error", null],
  anthropic: "api_error",
  gateway: "internal_server_error",
  message: "The server had an error.",
};
const busy: Said = {
  openai: ["service_unavailable_error", null],
  anthropic: "overloaded_error",
  gateway: "internal_server_error",
  message: "Overloaded",
};
const limited: Said = {
  openai: ["requests", "rate_limit_exceeded"],
  anthropic: "rate_limit_error",
  gateway: "rate_limit_exceeded",
  message: "Rate limit reached.",
};
const overflow = invalid(
  "context_length_exceeded",
  "prompt is too long: 210000 tokens > 200000 maximum. This model's maximum context length is 200000 tokens.",
);
const keyless: Said = {
  openai: ["invalid_request_error", "invalid_api_key"],
  anthropic: "authentication_error",
  gateway: "authentication_error",
  message: "Incorrect API key provided.",
};
const forbidden: Said = {
  openai: ["permission_error", null],
  anthropic: "permission_error",
  gateway: "forbidden",
  message: "You may not use this model.",
};
const missing: Said = {
  openai: ["invalid_request_error", "model_not_found"],
  anthropic: "not_found_error",
  gateway: "model_not_found",
  message: "The model does not exist.",
};
const spent: Said = {
  openai: ["insufficient_quota", "insufficient_quota"],
  anthropic: "rate_limit_error",
  gateway: "insufficient_quota",
  message: "You exceeded your current quota.",
};

/** Answers that are not a stream. */
export const statuses: ReadonlyArray<Fault> = [
  inJson(400, "invalid request", invalid(null, "messages must not be empty")),
  inJson(400, "context overflow", overflow),
  inJson(401, "wrong key", keyless),
  inJson(403, "not permitted", forbidden),
  inJson(404, "no such model", missing),
  inJson(408, "request timeout", failed),
  inJson(409, "conflict", failed),
  inJson(413, "too large", { ...invalid(null, "Request too large"), anthropic: "request_too_large" }),
  inJson(422, "unprocessable", invalid(null, "max_tokens must be positive")),
  inJson(429, "rate limit, retry-after: 7", limited, ["retry-after: 7"]),
  inJson(429, "quota", spent),
  inJson(500, "server error", failed),
  inJson(501, "not implemented", failed),
  inJson(503, "overloaded", busy),
  inJson(529, "overloaded", busy),
  inJson(500, "x-should-retry: false", failed, ["x-should-retry: false"]),
  inHtml(403),
  inHtml(429),
  inHtml(502),
  inHtml(503),
  inHtml(504),
];

/** The same refusal for every try, with a wait that is short enough for a test. */
export const limitedTwice: Fault = {
  ...inJson(429, "", limited, ["retry-after-ms: 1"]),
  name: "429, retry-after-ms: 1, twice",
};

const event = (client: Client, said: Said): string => {
  const data = json(client, said);
  if (client.protocol === "anthropic-messages") return `event: error\ndata: ${data}\n\n`;
  return client.protocol === "ai-gateway" ? `data: ${data.replace("{", '{"type":"error",')}\n\n` : `data: ${data}\n\n`;
};

const inStream = (name: string, text: (client: Client) => string): Fault => ({
  name,
  run: (client) => answering(client, `${streamed(firstEvent(client), text(client))}0\r\n\r\n`),
});

/** Events of a stream that began with 200 and text. */
export const events: ReadonlyArray<Fault> = [
  inStream("server error in the stream", (client) => event(client, failed)),
  inStream("overloaded in the stream", (client) => event(client, busy)),
  inStream("rate limit in the stream", (client) => event(client, limited)),
  inStream("context overflow in the stream", (client) => event(client, overflow)),
  inStream("invalid JSON in the stream", (client) =>
    client.protocol === "anthropic-messages"
      ? 'event: content_block_delta\ndata: {"type":"content_block\n\n'
      : 'data: {"choices":[{"delta\n\n',
  ),
  inStream("clean end without a marker", () => ""),
];
