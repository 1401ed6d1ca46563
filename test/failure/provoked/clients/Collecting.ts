/**
 * Expected outcomes of the SDKs' collecting calls and of the AI SDK's retries.
 */

import { events, limitedTwice, statuses } from "../Answers.ts";
import type { Fault } from "../Faults.ts";
import { final, refused, retryable } from "../Outcome.ts";
import type { Expected, Section } from "../Section.ts";
import { generateWithRetries } from "./AiSdk.ts";
import type { Client } from "./Client.ts";
import { collectingClients } from "./CollectingClients.ts";

const retrying: Client = {
  name: "AI SDK generateText, maxRetries: 1",
  protocol: "openai-chat",
  ask: async ({ url }) => {
    await generateWithRetries(url, 1);
    return undefined;
  },
};

const names = collectingClients.map(({ name }) => name);
const [openai = "", anthropic = "", aiSdk = ""] = names;

const without = (fault: Fault, ...left: ReadonlyArray<string>): Fault => ({ ...fault, without: left });

const expected: Expected = {
  "clean end without a marker": [
    [[openai, anthropic], retryable("truncated")],
    [[aiSdk], "no error"],
  ],
  "overloaded in the stream": [
    [[openai], refused("overloaded", { code: "service_unavailable_error" })],
    [[anthropic], refused("overloaded", { code: "overloaded_error" })],
    [[aiSdk], "no error"],
  ],
  "500 server error": [
    [[openai], retryable("server_error", { status: 500, code: "server_error" })],
    [[anthropic], retryable("server_error", { status: 500, code: "api_error" })],
    [[aiSdk], final("unknown")],
  ],
  "429, retry-after-ms: 1, twice": [
    [[retrying.name], refused("rate_limited", { status: 429, code: "rate_limit_exceeded", retry_after_ms: 1 })],
  ],
};

const picked = [...events, ...statuses]
  .filter(({ name }) => Object.hasOwn(expected, name))
  .map((fault) => without(fault, retrying.name));

/** Calls that collect a stream, and calls that retry. */
export const collecting: Section = {
  title: "Calls that wait for the whole response, or retry",
  about:
    "Errors of calls that return a whole response. The AI SDK's `text` ignores an error part after the first text, and before that only reports that there was no output, so our adapter reads `fullStream`. A RetryError of the AI SDK counts as the error of its last try.",
  clients: [...collectingClients, retrying],
  faults: [...picked, without(limitedTwice, ...names)],
  expected,
};
