/**
 * The measured clients, each with its rule: the events that keep it waiting, the failures that it retries, and the ends of its turn.
 *
 * Delays between requests are omitted, so that a turn of the most patient client takes only as long as its requests. For a client that
 * retries without end, the rule stops at a number that no turn through the gateway may come near.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { samples } from "../../samples/index.ts";
import { textAt } from "../../samples/Json.ts";
import type { ClientRule, Frame, Problem } from "./StandIn.ts";

/** A client with one protocol. */
export interface StandIn extends ClientRule {
  readonly protocol: ProtocolId;
  /** Maximum requests of a turn through the gateway if the fault never ends; by default as many as directly. */
  readonly requestsMax?: number;
  /** Set if it retries after a broken response and withdraws its text: after cuts only, or after error events, too. */
  readonly mends?: "cuts" | "errors";
  /** True if it retries after a broken response and keeps its shown text, which `live` would repeat without an error. */
  readonly keepsText?: boolean;
  /** True if it looks like an agent that recovers a shown response: in `live` it gets the broken connection. */
  readonly looksMending?: boolean;
}

/** Maximum requests of a client that retries without end. */
const endless = 20;

const anything = (): boolean => true;
const events = ({ kind }: Frame): boolean => kind !== "comment";

const retryable = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500;

/** OpenAI's and Anthropic's SDKs, and clients built on them. */
const sdkRefused: ClientRule["refused"] = (status, retry) =>
  retry === "false" ? "stops" : retry === "true" || retryable(status) ? "again" : "stops";

/** Agents that retry any refusal except for statuses that mean a wrong request. */
const butFor =
  (...statuses: ReadonlyArray<number>): ClientRule["refused"] =>
  (status) =>
    statuses.includes(status) ? "stops" : "again";

const mustBe =
  (code: string): ClientRule["problem"] =>
  (problem) =>
    problem.code === code ? "stops" : "again";

const invalid = mustBe("invalid_request_error");
const always = (act: "again" | "stops") => () => act;

/** The error in Responses must be nested; a flat one is retried. */
const nestedInvalid: ClientRule["problem"] = ({ as, code }) =>
  as !== "error" && (code === "invalid_prompt" || code === "invalid_request_error") ? "stops" : "again";

const standIn = (
  protocol: ProtocolId,
  name: string,
  agent: string,
  rule: Partial<StandIn> & Pick<StandIn, "refused" | "problem" | "cleanEnd" | "reset" | "most">,
): StandIn => ({
  path: samples[protocol].path,
  body: (_, stream) => ({ ...samples[protocol].question("x"), ...samples[protocol].streams(stream) }),
  take: samples[protocol].take,
  counts: anything,
  ...rule,
  protocol,
  name,
  headers: { "user-agent": agent, ...rule.headers },
});

const codex = standIn("openai-responses", "codex", "codex_exec/0.169.0 (Debian 12.0.0; x86_64)", {
  headers: { originator: "codex_exec" },
  // A repeat has other bytes, because its keys have another order.
  body: (request) => {
    const metadata = [
      ["a", "1"],
      ["b", "2"],
    ];
    const ordered = request % 2 === 1 ? metadata : metadata.toReversed();
    return { model: "m", input: "x", stream: true, client_metadata: Object.fromEntries(ordered) };
  },
  counts: (frame) => events(frame) && textAt(frame.json, "type") !== undefined,
  most: endless,
  requestsMax: 4,
  refused: butFor(400),
  problem: ({ as, code }) =>
    as !== "failed" ? "ignores" : ["invalid_prompt", "server_is_overloaded"].includes(code) ? "stops" : "again",
  cleanEnd: "again",
  reset: "again",
  resetEats: true,
  mends: "cuts",
});

const claudeCode = standIn("anthropic-messages", "claude-code", "claude-cli/2.1.332 (external, sdk-cli)", {
  headers: { "x-app": "cli" },
  // The repeat without streaming requests fewer tokens.
  body: (_, stream) => ({
    ...{ model: "m", max_tokens: stream ? 128_000 : 64_000, stream },
    messages: [{ role: "user", content: "x" }],
  }),
  most: 6,
  requestsMax: 4,
  refused: (status, retry) => (status === 424 || (retry === "false" && status >= 500) ? "stops" : "again"),
  problem: mustBe("nothing ends it: it asks once more, without streaming"),
  cleanEnd: "again",
  reset: "again",
  lastIsWhole: true,
  mends: "cuts",
});

const openCodeAgent = "opencode/1.18.33 ai-sdk/provider-utils/4.0.0 runtime/bun/1.3.13";
const openCodeRule = { most: endless, requestsMax: 4, cleanEnd: "again", reset: "again", mends: "cuts" } as const;
const openCode = [
  standIn("openai-chat", "opencode, chat", openCodeAgent, {
    ...openCodeRule,
    refused: butFor(400, 424),
    problem: invalid,
  }),
  standIn("openai-responses", "opencode, responses", openCodeAgent, {
    ...openCodeRule,
    refused: butFor(400, 424),
    problem: nestedInvalid,
  }),
  standIn("anthropic-messages", "opencode, anthropic", openCodeAgent, {
    ...openCodeRule,
    refused: butFor(400, 424),
    // An error as the first event is always retried.
    problem: (problem, before) =>
      before.some(({ json }) => textAt(json, "type") === "message_start") ? invalid(problem, before) : "again",
  }),
];

const openCode2Agent = "opencode/latest/2.0.15/cli";
const openCode2Rule = {
  most: 11,
  refused: sdkRefused,
  cleanEnd: "again",
  reset: "again",
  keepsText: true,
} as const;
const openCode2 = [
  standIn("openai-chat", "opencode 2, chat", openCode2Agent, { ...openCode2Rule, problem: invalid }),
  standIn("openai-responses", "opencode 2, responses", openCode2Agent, { ...openCode2Rule, problem: nestedInvalid }),
  standIn("anthropic-messages", "opencode 2, anthropic", openCode2Agent, { ...openCode2Rule, problem: invalid }),
];

const geminiCli = standIn("google-gemini", "gemini-cli", "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64)", {
  most: 4,
  refused: butFor(400, 424),
  problem: ({ as }) => (as === "bare" ? "stops" : "again"),
  cleanEnd: "again",
  reset: "stops",
});

const qwenCode = standIn("openai-chat", "qwen-code", "QwenCode/0.24.4 (linux; x64)", {
  counts: events,
  most: 7,
  refused: butFor(400, 424),
  problem: invalid,
  cleanEnd: "again",
  reset: "stops",
});

/** The words that pi considers a transient fault, anywhere in a message. */
const passing =
  /overloaded|rate.?limit|429|500|502|503|504|service.?unavailable|server.?error|internal.?error|network.?error|connection.?error|connection.?lost|fetch failed|socket hang up|ended without|terminated|timed? ?out|timeout|retry delay/i;

const piRule = {
  headers: { "x-stainless-retry-count": "0" },
  most: 4,
  requestsMax: 4,
  refused: (status: number, _: string | undefined, message: string) =>
    passing.test(message) || status >= 500 ? "again" : "stops",
  problem: ({ code, message }: Problem) => (passing.test(`${code} ${message}`) ? "again" : "stops"),
  cleanEnd: "whole",
  reset: "again",
} as const;
const olderPi = [
  standIn("openai-chat", "pi 0.73, chat", "OpenAI/JS 6.26.0", piRule),
  standIn("openai-responses", "pi 0.73, responses", "OpenAI/JS 6.26.0", piRule),
  standIn("anthropic-messages", "pi 0.73, anthropic", "Anthropic/JS 0.91.1", piRule),
];

const piAgent = "pi/1.6.0 (linux; node/v24.21.0)";
const newerPiRule = { ...piRule, cleanEnd: "again", mends: "errors" } as const;
const pi = [
  standIn("openai-chat", "pi, chat", piAgent, newerPiRule),
  standIn("openai-responses", "pi, responses", piAgent, newerPiRule),
  standIn("anthropic-messages", "pi, anthropic", piAgent, newerPiRule),
];

/** An agent that the table does not know, over an SDK that names itself in a header. It retries like pi. */
const unknownAgents = [
  standIn("openai-chat", "unknown over OpenAI's SDK", "an-agent/1.0", {
    ...newerPiRule,
    headers: { "x-stainless-lang": "js", "x-stainless-retry-count": "0" },
  }),
  standIn("google-gemini", "unknown over Google's SDK", "an-agent/1.0", {
    ...newerPiRule,
    headers: { "x-goog-api-client": "google-genai-sdk/3.1.0 gl-node/v24.21.0" },
  }),
];

const copilotRule = {
  headers: { "x-initiator": "user", "x-interaction-type": "conversation-agent" },
  most: 6,
  requestsMax: 4,
  refused: (status: number, retry: string | undefined) =>
    retry === "false" || status === 400 || status === 424 ? "stops" : "again",
  cleanEnd: "again",
  reset: "again",
} as const;
const copilot = [
  standIn("openai-chat", "copilot, chat", "OpenAI/JS 5.20.1", { ...copilotRule, problem: always("again") }),
  standIn("openai-responses", "copilot, responses", "OpenAI/JS 5.20.1", { ...copilotRule, problem: nestedInvalid }),
  standIn("anthropic-messages", "copilot, anthropic", "Anthropic/JS 0.94.0", {
    ...copilotRule,
    problem: always("again"),
  }),
];

const clineAgent = "ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13";
const chatClients = [
  standIn("openai-chat", "cline", clineAgent, {
    most: 4,
    refused: butFor(400, 424),
    problem: always("stops"),
    cleanEnd: "stops",
    reset: "stops",
    resetEats: true,
  }),
  standIn("openai-chat", "continue", "ls/JS 5.23.2", {
    most: 8,
    refused: butFor(400, 424),
    problem: invalid,
    cleanEnd: "whole",
    reset: "again",
  }),
  standIn("openai-chat", "LangChain", "langchainjs-openai/1.0.0 (node/v24.21.0)", {
    most: 7,
    refused: butFor(400, 409),
    problem: always("stops"),
    cleanEnd: "whole",
    reset: "stops",
  }),
];

const aiSdkRule = {
  most: 3,
  refused: (status: number) => (retryable(status) ? "again" : "stops"),
  problem: always("stops"),
  cleanEnd: "stops",
  reset: "stops",
  resetEats: true,
} as const;
const aiSdkAgent = "ai-sdk-openai/4.0.118 ai-sdk-provider-utils/5.0.30 runtime/node.js/24";
const aiSdk = [
  standIn("openai-chat", "AI SDK, chat", aiSdkAgent, aiSdkRule),
  standIn("openai-responses", "AI SDK, responses", aiSdkAgent, aiSdkRule),
  standIn("anthropic-messages", "AI SDK, anthropic", aiSdkAgent, aiSdkRule),
  standIn("google-gemini", "AI SDK, gemini", aiSdkAgent, aiSdkRule),
];

const sdkRule = {
  most: 3,
  refused: sdkRefused,
  problem: always("stops"),
  cleanEnd: "whole",
  reset: "stops",
} as const;
const likePi = { ...sdkRule, looksMending: true } as const;
const sdks = [
  standIn("openai-chat", "OpenAI SDK, chat", "OpenAI/JS 7.57.0", likePi),
  // To it `response.failed` alone is no error, but the nested error event is.
  standIn("openai-responses", "OpenAI SDK, responses", "OpenAI/JS 7.57.0", {
    ...likePi,
    problem: ({ as }) => (as === "failed" ? "ignores" : "stops"),
  }),
  standIn("anthropic-messages", "Anthropic SDK", "Anthropic/JS 1.12.0", likePi),
  standIn("google-gemini", "google-genai SDK", "google-genai-sdk/3.1.0 gl-node/v24.21.0", sdkRule),
];

/** Every client with every protocol in which it was measured. */
export const standIns: ReadonlyArray<StandIn> = [
  codex,
  claudeCode,
  ...openCode,
  ...openCode2,
  geminiCli,
  qwenCode,
  ...olderPi,
  ...pi,
  ...unknownAgents,
  ...copilot,
  ...chatClients,
  ...aiSdk,
  ...sdks,
];
