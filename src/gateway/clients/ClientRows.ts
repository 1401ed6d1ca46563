/**
 * Contains the client table: the responses that common agents and SDKs accept, count, retry and show.
 *
 * Measured on 2026-11-22 and 2026-11-29 with unmodified clients and a stand-in gateway that held, refused or ended its responses, in about
 * 200 trials with agents and 190 with SDKs. The first matching row applies. A client can forge any header, so safety must never depend on a
 * row.
 */
import { headerOf } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ClientRow, Difference, RequestMarks, Treatment } from "./ClientRow.ts";

/**
 * The treatment of an unknown client. Its `patienceMs` is below the shortest timeout of the known clients (gemini-cli, 60 s). A client that
 * reads the error event learns the reason. For other clients the body breaks after the event, which HTTP libraries report as an error (`npm
 * run stacks`).
 */
export const unknownTreatment: Treatment = {
  reveal: "live",
  onBreak: "tell",
  patienceMs: 45_000,
  holdMaxMs: undefined,
  status: 400,
  ending: "broken",
  mends: "nothing",
  asksByWords: true,
  firstNoOp: "event",
};

/**
 * Differences that apply to every client of a protocol. In the two protocols of OpenAI only comments may precede the provider's first
 * event: OpenAI's own helper throws if the first event of Responses is not `response.created`, and the AI SDK takes the id and the model of
 * a Chat response from the first delta.
 */
export const protocolDifferences: Readonly<Partial<Record<ProtocolId, Difference>>> = {
  "openai-chat": { firstNoOp: "comment" },
  "openai-responses": { firstNoOp: "comment" },
  // Before the first event, the form of a completion is unknown.
  "openai-completions": { firstNoOp: "comment" },
  // Nothing may precede `message-start`.
  "cohere-chat": { firstNoOp: "comment" },
  // The message of a no-op would have no entry yet.
  "mistral-conversations": { firstNoOp: "comment" },
};

/** Name of the row for clients that no other row matches. */
export const unknownName = "unknown";

/**
 * Default share of the client's own timeout that the gateway may use before it sends the response head. The rest covers time that only the
 * client measures, for example connecting.
 */
export const patienceShareDefault = 0.5;

const row = (
  given: Pick<ClientRow, "name" | "marks" | "isMatch"> & Partial<ClientRow>,
  everywhere: Difference,
  protocols: ClientRow["protocols"] = {},
): ClientRow => ({ measured: "", patienceShare: patienceShareDefault, ...given, everywhere, protocols });

/**
 * Ends the body cleanly after the error event. No measured client mistakes that for a complete response, and two clients lose the error's
 * text if the body breaks.
 */
const endsClean: Difference = { ending: "clean" };

/** For clients whose retries depend on the status alone. */
const byStatus: Difference = { asksByWords: false };

/** For clients that retry after a broken connection, with or without the gateway. With an SDK, the program that uses it may retry. */
const mending: Difference = { ...endsClean, mends: "errors" };

const agent =
  (pattern: RegExp) =>
  ({ agent }: RequestMarks): boolean =>
    pattern.test(agent);

const header =
  (name: string, pattern = /^/) =>
  ({ headers }: RequestMarks): boolean => {
    const value = headerOf(headers, name);
    return value !== undefined && pattern.test(value);
  };

const isAny =
  (...matches: ReadonlyArray<ClientRow["isMatch"]>) =>
  (request: RequestMarks): boolean =>
    matches.some((one) => one(request));

/** Agents, recognised by their own marks. An agent's requests also carry the marks of its SDK, so agents precede SDKs. */
const agents: ReadonlyArray<ClientRow> = [
  row(
    {
      name: "codex",
      marks: "user agent `codex_…`, or header `originator: codex_…`",
      measured: "0.171",
      isMatch: isAny(agent(/^codex[_-]/), header("originator", /^codex[_-]/)),
    },
    // After an error event of the provider, codex shows its text twice.
    { ...endsClean, ...byStatus, mends: "cuts" },
    // Codex counts events and ignores comments, so with comments alone it times out after 300 s.
    { "openai-responses": { firstNoOp: "event" } },
  ),
  row(
    {
      name: "claude-code",
      marks: "user agent `claude-cli/…`, or header `x-app: cli`",
      measured: "2.1.332",
      isMatch: isAny(agent(/^claude-cli\//), header("x-app", /^cli$/)),
    },
    // Claude Code sends a request six times if the response is 400 or 422.
    { ...endsClean, ...byStatus, status: 424, mends: "cuts" },
  ),
  row(
    {
      name: "opencode-2",
      marks: "user agent `opencode/CHANNEL/2.…`",
      measured: "2.0.15",
      isMatch: agent(/^opencode\/[^/ ]+\/\d/),
    },
    // opencode 2 retries after a broken connection and after an error event, and both times keeps the text that it has already shown.
    { ...endsClean, ...byStatus },
  ),
  row(
    { name: "opencode", marks: "user agent `opencode/…`", measured: "1.18.33", isMatch: agent(/^opencode\//) },
    { ...endsClean, mends: "errors" },
    // After an error event in Anthropic's protocol, opencode shows its text twice.
    { "anthropic-messages": { mends: "cuts" } },
  ),
  row(
    { name: "gemini-cli", marks: "user agent `GeminiCLI…`", measured: "0.61", isMatch: agent(/^GeminiCLI\b/) },
    { ...endsClean, ...byStatus },
  ),
  row(
    {
      name: "qwen-code",
      marks: "user agent `QwenCode/…`",
      measured: "0.24.4",
      isMatch: agent(/^QwenCode\//),
      patienceShare: 100 / 120,
    },
    // Timeouts of qwen-code: 120 s for the head, and 900 s from the request for the whole stream, regardless of the bytes sent.
    { ...endsClean, patienceMs: 100_000, holdMaxMs: 840_000 },
    // qwen-code counts events and ignores comments, so with comments alone it times out after 240 s.
    { "openai-chat": { firstNoOp: "event" } },
  ),
  row({ name: "pi", marks: "user agent `pi/…`", measured: "1.6.0", isMatch: agent(/^pi\//) }, mending),
  row(
    {
      name: "copilot",
      marks: "header `x-initiator` or `x-interaction-type`",
      measured: "1.0.102",
      isMatch: isAny(header("x-initiator"), header("x-interaction-type")),
    },
    { ...endsClean, ...byStatus },
    // No ending of a stream stops copilot: it retries six times and shows the partial response six times. Before the head, a plain status
    // stops it, and its SDK waits 600 s for the head.
    {
      "openai-chat": { reveal: "on_complete", patienceMs: 240_000 },
      "anthropic-messages": { reveal: "on_complete", patienceMs: 240_000 },
    },
  ),
];

/** SDKs, and agents that cannot be told apart from their SDK. */
const sdks: ReadonlyArray<ClientRow> = [
  row(
    {
      name: "continue",
      marks: "user agent `ls/JS …` (OpenAI's SDK, minified)",
      measured: "1.5.47",
      isMatch: agent(/^ls\/JS\b/),
    },
    { ...endsClean, ...byStatus },
  ),
  row(
    {
      name: "ai-sdk",
      marks: "`ai-sdk` in the user agent",
      measured: "ai 7.0.173, cline 3.0.65",
      isMatch: agent(/\bai-sdk\b/),
    },
    endsClean,
  ),
  row(
    { name: "langchain", marks: "user agent `langchainjs-…`", measured: "1.0.0", isMatch: agent(/^langchainjs-/) },
    { ...endsClean, ...byStatus },
  ),
  row(
    {
      name: "openai-sdk",
      marks: "user agent `OpenAI/JS …`, `AsyncOpenAI/Python …` and similar",
      measured: "JS 7.57, pi 0.73.1; Python from its source",
      isMatch: agent(/^(?:Async)?(?:Azure)?OpenAI\/(?:JS|Python)\b/),
    },
    mending,
  ),
  row(
    {
      name: "anthropic-sdk",
      marks: "user agent `Anthropic/JS …`, `AsyncAnthropic/Python …` and similar",
      measured: "JS 1.12, pi 0.73.1; Python from its source",
      isMatch: agent(/^(?:Async)?Anthropic\w*\/(?:JS|Python)\b/),
    },
    mending,
  ),
  row(
    {
      name: "aws-sdk",
      marks: "user agent `aws-sdk-js/…`, `Boto3/…` and similar",
      measured: "JS 3.1164; Python from its source",
      isMatch: agent(/^(?:aws-sdk-|Boto3\/|aws-cli\/)/),
    },
    // An exception in the stream is thrown and not retried.
    { ...endsClean, ...byStatus },
  ),
  row(
    {
      name: "google-genai-sdk",
      marks: "user agent `google-genai-sdk/…`",
      measured: "JS 3.1; Python from its source",
      isMatch: agent(/^google-genai-sdk\//),
    },
    { ...endsClean, ...byStatus },
  ),
  row(
    {
      name: "stainless-sdk",
      marks:
        "header `x-stainless-lang` (OpenAI's and Anthropic's SDKs in other languages, or under another user agent)",
      isMatch: header("x-stainless-lang"),
    },
    // Their clean end was not measured in every language.
    { mends: "errors" },
  ),
  row(
    {
      name: "sdk-agent",
      marks: "header `x-goog-api-client: google-genai-sdk/…` under another user agent",
      isMatch: header("x-goog-api-client", /^google-genai-sdk\//),
    },
    // The agent is unknown and may retry after a break, so the first break must look the same as without the gateway.
    mending,
  ),
];

/** The client table. The first row that matches a request applies. */
export const clientRows: ReadonlyArray<ClientRow> = [...agents, ...sdks];

/** The row of all other clients. */
export const unknownRow: ClientRow = row({ name: unknownName, marks: "any other", isMatch: () => true }, {});
