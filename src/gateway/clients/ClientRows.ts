/**
 * Holds the table of clients: what the agents and SDKs that people use accept, count, repeat and show.
 *
 * Measured on 2026-11-22 with the unmodified clients, about 200 trials with agents and 190 with SDKs. The first row that
 * matches counts. A header is a client's own word, so that a row must never be what keeps something safe.
 */
import { headerOf } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ClientRow, Difference, RequestMarks, Treatment } from "./ClientRow.ts";

/**
 * How an unknown client is treated. The patience is below that of the shortest known one (gemini-cli, 60 s), and a reset is the
 * only end that no client takes for the whole.
 */
export const unknownTreatment: Treatment = {
  reveal: "live",
  onBreak: "abort",
  patienceMs: 45_000,
  holdMaxMs: undefined,
  status: 400,
  ending: "reset",
  firstNoOp: "event",
};

/** Where every client of a protocol differs. OpenAI's own helper throws at any first event but `response.created`. */
export const protocolDifferences: Readonly<Partial<Record<ProtocolId, Difference>>> = {
  "openai-responses": { firstNoOp: "comment" },
};

/** The label of a client that no row matches. */
export const unknownName = "unknown";

/** What was measured of all clients of the table: no one takes a clean end behind the right error event for the whole. */
const measured: Difference = { onBreak: "tell", ending: "clean" };

const agentIs =
  (pattern: RegExp) =>
  ({ agent }: RequestMarks): boolean =>
    pattern.test(agent);

const says = (name: string, pattern: RegExp, { headers }: RequestMarks): boolean =>
  pattern.test(headerOf(headers, name) ?? "");

const has = (name: string, { headers }: RequestMarks): boolean => headerOf(headers, name) !== undefined;

/** Agents first, whose requests carry the marks of the SDK below them too. */
export const clientRows: ReadonlyArray<ClientRow> = [
  {
    name: "codex",
    marks: "user agent `codex_*`, or header `originator: codex_*`",
    matches: (request) => agentIs(/^codex[_-]/i)(request) || says("originator", /^codex[_-]/i, request),
    everywhere: measured,
    // It counts events: a comment keeps it waiting for 300 s and no longer.
    protocols: { "openai-responses": { firstNoOp: "event" } },
  },
  {
    name: "claude-code",
    marks: "user agent `claude-cli/`, or header `x-app: cli`",
    matches: (request) => agentIs(/^claude-cli\//)(request) || says("x-app", /^cli$/, request),
    // It sends a 400 and a 422 six times.
    everywhere: { ...measured, status: 424 },
    protocols: {},
  },
  {
    name: "opencode",
    marks: "user agent `opencode/`",
    matches: agentIs(/^opencode\//),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "gemini-cli",
    marks: "user agent `GeminiCLI`",
    matches: agentIs(/^GeminiCLI\b/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "qwen-code",
    marks: "user agent `QwenCode/`",
    matches: agentIs(/^QwenCode\//),
    // Its request ends after 120 s without a head, and its stream 900 s after the request, whatever is sent.
    everywhere: { ...measured, patienceMs: 100_000, holdMaxMs: 840_000 },
    protocols: {},
  },
  {
    name: "copilot",
    marks: "header `x-initiator` or `x-interaction-type`",
    matches: (request) => has("x-initiator", request) || has("x-interaction-type", request),
    everywhere: measured,
    // Nothing in these streams ends it: it asks six times and shows its part six times.
    protocols: { "openai-chat": { reveal: "on_complete" }, "anthropic-messages": { reveal: "on_complete" } },
  },
  {
    name: "continue",
    marks: "user agent `ls/JS` (OpenAI's SDK, minified)",
    matches: agentIs(/^ls\/JS\b/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "langchain",
    marks: "user agent `langchainjs-`",
    matches: agentIs(/^langchainjs-/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "ai-sdk",
    marks: "`ai-sdk/` or `ai-sdk-` in the user agent (cline too)",
    matches: agentIs(/(?:^|\s)ai-sdk[/-]/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "openai-sdk",
    marks: "user agent `OpenAI/JS`, `AsyncOpenAI/Python` and the like (pi too)",
    matches: agentIs(/^(?:Async)?(?:Azure)?OpenAI\/(?:JS|Python)\b/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "anthropic-sdk",
    marks: "user agent `Anthropic/JS`, `AsyncAnthropic/Python` and the like (pi too)",
    matches: agentIs(/^(?:Async)?Anthropic\w*\/(?:JS|Python)\b/),
    everywhere: measured,
    protocols: {},
  },
  {
    name: "google-genai-sdk",
    marks: "user agent `google-genai-sdk/`",
    matches: agentIs(/^google-genai-sdk\//),
    everywhere: measured,
    protocols: {},
  },
];
