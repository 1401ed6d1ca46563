/**
 * Expected outcomes of error answers: with a status, and inside a stream.
 */
import { events as eventFaults, statuses } from "./Answers.ts";
import { anthropic, bytes, clients, effect, events, everyone, gateway, openai } from "./clients/Names.ts";
import { final, type Outcome, refused, rejected, retryable, type Said } from "./Outcome.ts";
import type { Expected, Group, Section } from "./Section.ts";

/** The same verdict for all clients, each with its provider's own code. Effect's client has read only the head. */
const said = (
  outcome: Said,
  codes: { openai: string; anthropic: string; gateway: string },
  unread: Said = outcome,
): ReadonlyArray<Group> => [
  [openai, { ...outcome, code: codes.openai }],
  [anthropic, { ...outcome, code: codes.anthropic }],
  [gateway, { ...outcome, code: codes.gateway }],
  [effect, unread],
];

const same = (code: string) => ({ openai: code, anthropic: code, gateway: code });
const invalid = same("invalid_request_error");
const failed = { openai: "server_error", anthropic: "api_error", gateway: "internal_server_error" };
const everywhere = (outcome: Outcome): ReadonlyArray<Group> => [[everyone, outcome]];

const expectedStatuses: Expected = {
  "400 invalid request": said(rejected("invalid_request", { status: 400 }), invalid),
  "400 context overflow": said(
    rejected("context_overflow", { status: 400 }),
    { ...invalid, openai: "context_length_exceeded" },
    rejected("invalid_request", { status: 400 }),
  ),
  "401 wrong key": said(rejected("auth", { status: 401 }), {
    ...same("authentication_error"),
    openai: "invalid_api_key",
  }),
  "403 not permitted": said(rejected("permission", { status: 403 }), {
    ...same("permission_error"),
    gateway: "forbidden",
  }),
  "404 no such model": said(rejected("not_found", { status: 404 }), {
    ...same("model_not_found"),
    anthropic: "not_found_error",
  }),
  "408 request timeout": said(retryable("server_error", { status: 408 }), failed),
  "409 conflict": said(retryable("server_error", { status: 409 }), failed),
  "413 too large": said(rejected("payload_too_large", { status: 413 }), {
    ...invalid,
    anthropic: "request_too_large",
  }),
  "422 unprocessable": said(rejected("invalid_request", { status: 422 }), invalid),
  "429 rate limit, retry-after: 7": said(refused("rate_limited", { status: 429, retry_after_ms: 7_000 }), {
    ...same("rate_limit_exceeded"),
    anthropic: "rate_limit_error",
  }),
  "429 quota": [
    [[...openai, ...gateway], rejected("quota", { status: 429, code: "insufficient_quota" })],
    [anthropic, refused("rate_limited", { status: 429, code: "rate_limit_error" })],
    [effect, refused("rate_limited", { status: 429 })],
  ],
  "500 server error": said(retryable("server_error", { status: 500 }), failed),
  "501 not implemented": said(final("server_error", { status: 501 }), failed),
  "503 overloaded": [
    [openai, refused("overloaded", { status: 503, code: "service_unavailable_error" })],
    [anthropic, refused("overloaded", { status: 503, code: "overloaded_error" })],
    [gateway, refused("server_error", { status: 503, code: "internal_server_error" })],
    [effect, retryable("server_error", { status: 503 })],
  ],
  "529 overloaded": said(
    refused("overloaded", { status: 529 }),
    { openai: "service_unavailable_error", anthropic: "overloaded_error", gateway: "internal_server_error" },
    retryable("overloaded", { status: 529 }),
  ),
  "500 x-should-retry: false": said(final("server_error", { status: 500 }), failed),
  "403 HTML": everywhere(final("rejected", { reason: "permission", status: 403 })),
  "429 HTML": everywhere(retryable("rate_limited", { status: 429 })),
  "502 HTML": everywhere(retryable("server_error", { status: 502 })),
  "503 HTML": everywhere(retryable("server_error", { status: 503 })),
  "504 HTML": everywhere(retryable("server_error", { status: 504 })),
};

/** Inside a stream only clients that read events see an error. */
const read = (...groups: ReadonlyArray<Group>): ReadonlyArray<Group> => [...groups, [bytes, "no error"]];
const speaksOpenAi = ["openai", "AI SDK"];

const expectedEvents: Expected = {
  "server error in the stream": read(
    [speaksOpenAi, retryable("server_error", { code: "server_error" })],
    [anthropic, retryable("server_error", { code: "api_error" })],
    [gateway, retryable("server_error", { code: "internal_server_error" })],
  ),
  "overloaded in the stream": read(
    [speaksOpenAi, refused("overloaded", { code: "service_unavailable_error" })],
    [anthropic, refused("overloaded", { code: "overloaded_error" })],
    [gateway, retryable("server_error", { code: "internal_server_error" })],
  ),
  "rate limit in the stream": read(
    [[...speaksOpenAi, ...gateway], refused("rate_limited", { code: "rate_limit_exceeded" })],
    [anthropic, refused("rate_limited", { code: "rate_limit_error" })],
  ),
  "context overflow in the stream": read(
    [speaksOpenAi, rejected("context_overflow", { code: "context_length_exceeded" })],
    [[...anthropic, ...gateway], rejected("context_overflow", { code: "invalid_request_error" })],
  ),
  "invalid JSON in the stream": read([events, retryable("protocol", { reason: "damaged_frame" })]),
  "clean end without a marker": everywhere("no error"),
};

export const responses: Section = {
  title: "Responses with an error status",
  about:
    "The body is an error object of the client's provider, or a proxy's page. Effect's `filterStatusOk` does not read the body, so its error only has the head: read the body if you need to detect quota errors, context overflow or a 503 from the provider itself.",
  clients,
  faults: statuses,
  expected: expectedStatuses,
};

export const streams: Section = {
  title: "Errors inside a stream",
  about:
    "The event comes after a 200 and some text. Clients that only deliver bytes report no error: the protocol decoders of this package read the event, and the missing marker is `truncated`.",
  clients,
  faults: eventFaults,
  expected: expectedEvents,
};
