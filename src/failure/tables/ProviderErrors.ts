/**
 * Maps the error codes and error messages of providers to their meaning. Every row names its provider.
 *
 * A code takes precedence. A message counts if there is no code or only a weak one, or if the message names a fault that waiting does not
 * fix. The words "quota" and "billing" prove nothing, because the message of Gemini's per-minute limit contains both.
 */
import { addKnownCodes } from "../thrown/ErrorLabel.ts";
import type { StatusFailure } from "./HttpStatus.ts";

const rejectFor = (reason: (StatusFailure & { kind: "rejected" })["reason"]): StatusFailure => ({
  kind: "rejected",
  reason,
});

/**
 * Meaning of a group of codes, with its rank. If an error has several codes, the code with the highest rank counts (DeepSeek sends `type:
 * authentication_error` together with `code: invalid_request_error`).
 */
export interface CodeMeaning {
  readonly failure: StatusFailure;
  readonly rank: 1 | 2 | 3 | 4;
  /** False if the provider had begun to work on the request. */
  readonly not_processed?: boolean;
}

const overflow: CodeMeaning = { failure: rejectFor("context_overflow"), rank: 4 };
const policy: CodeMeaning = { failure: rejectFor("content_policy"), rank: 4 };
const quota: CodeMeaning = { failure: rejectFor("quota"), rank: 4 };
const toolInput: CodeMeaning = { failure: { kind: "invalid_tool_input" }, rank: 4 };
const auth: CodeMeaning = { failure: rejectFor("auth"), rank: 3 };
const payload: CodeMeaning = { failure: rejectFor("payload_too_large"), rank: 3 };
const notFound: CodeMeaning = { failure: rejectFor("not_found"), rank: 3 };
const rate: CodeMeaning = { failure: { kind: "rate_limited" }, rank: 2 };
const overloaded: CodeMeaning = { failure: { kind: "overloaded" }, rank: 2 };
const begun: CodeMeaning = { failure: { kind: "overloaded" }, rank: 2, not_processed: false };
const permission: CodeMeaning = { failure: rejectFor("permission"), rank: 2 };
const cancelled: CodeMeaning = { failure: { kind: "cancelled", by: "provider" }, rank: 2 };
const invalid: CodeMeaning = { failure: rejectFor("invalid_request"), rank: 1 };
const server: CodeMeaning = { failure: { kind: "server_error" }, rank: 1 };
/**
 * A gateway of this package gave up on its provider. The request was not at fault, so this code outranks the status. An `x-should-retry`
 * with it means that the gateway has already retried.
 */
const gaveUp: CodeMeaning = { failure: { kind: "server_error" }, rank: 4 };
/** A request that this server can never serve, according to its message. It outranks a 5xx status and less specific codes. */
const never: CodeMeaning = { failure: rejectFor("invalid_request"), rank: 4 };
/** A request that exceeds a limit of its account. It looks like a rate limit, but no wait makes the request fit. */
const larger: CodeMeaning = { failure: rejectFor("payload_too_large"), rank: 4 };

/** [the provider, the meaning, the codes as spelled on the wire]. */
const rows: ReadonlyArray<readonly [string, CodeMeaning, string]> = [
  ["OpenAI, Azure, Groq, DeepSeek, Cerebras", overflow, "context_length_exceeded string_above_max_length"],
  ["OpenAI Responses", overflow, "context_window_exceeded"],
  ["Perplexity", overflow, "too_many_prompt_tokens"],
  ["Cohere", overflow, "TOO_MANY_TOKENS"],
  ["GitHub Copilot", overflow, "model_max_prompt_tokens_exceeded"],
  ["llama.cpp", overflow, "exceed_context_size_error"],
  ["LiteLLM", overflow, "ContextWindowExceededError"],
  ["OpenAI", policy, "content_policy_violation moderation_blocked invalid_prompt cyber_policy_violation cyber_policy"],
  ["Azure", policy, "content_filter ResponsibleAIPolicyViolation content_filter_error"],
  ["Alibaba", policy, "data_inspection_failed DataInspectionFailed"],
  ["LiteLLM, xAI", policy, "ContentPolicyViolationError safety_check"],
  [
    "OpenAI",
    quota,
    "insufficient_quota billing_hard_limit_reached billing_not_active quota_exceeded usage_limit_reached",
  ],
  ["OpenAI (Codex plans)", quota, "usage_not_included access_terminated_error"],
  ["Anthropic", quota, "billing_error"],
  ["Moonshot", quota, "exceeded_current_quota_error"],
  [
    "Alibaba",
    quota,
    "Arrearage AllocationQuota.FreeTierOnly PrepaidBillOverdue PostpaidBillOverdue CommodityNotPurchased",
  ],
  ["one-api, LiteLLM", quota, "insufficient_user_quota budget_exceeded"],
  ["Google ErrorInfo", quota, "BILLING_DISABLED CONSUMER_SUSPENDED"],
  ["Bedrock", quota, "ServiceQuotaExceededException"],
  ["Mistral, Together", quota, "payment_required credit_limit insufficient_credits insufficient_balance"],
  ["MiniMax", quota, "insufficient_balance_error"],
  ["Groq", toolInput, "tool_use_failed"],
  ["Gemini", toolInput, "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL"],
  [
    "OpenAI, Groq, Perplexity",
    auth,
    "invalid_api_key incorrect_api_key no_api_key missing_api_key token_expired expired_token",
  ],
  ["Anthropic, DeepSeek", auth, "authentication_error"],
  ["OpenAI (Codex)", auth, "token_invalidated token_revoked refresh_token_expired"],
  ["RFC 6750", auth, "invalid_token"],
  [
    "google.rpc, ErrorInfo",
    auth,
    "UNAUTHENTICATED API_KEY_INVALID ACCESS_TOKEN_EXPIRED ACCESS_TOKEN_TYPE_UNSUPPORTED CREDENTIALS_MISSING",
  ],
  [
    "AWS",
    auth,
    "ExpiredTokenException ExpiredToken UnrecognizedClientException InvalidSignatureException RequestExpired",
  ],
  ["AWS", auth, "InvalidClientTokenId MissingAuthenticationTokenException IncompleteSignature"],
  ["Azure, Alibaba", auth, "Unauthorized InvalidAuthenticationToken ExpiredAuthenticationToken InvalidApiKey"],
  ["Anthropic", payload, "request_too_large"],
  ["OpenAI", payload, "payload_too_large request_entity_too_large"],
  ["OpenAI, Groq", notFound, "model_not_found model_decommissioned not_found unknown_model"],
  ["Anthropic", notFound, "not_found_error"],
  ["Azure", notFound, "DeploymentNotFound ResourceNotFound"],
  ["google.rpc", notFound, "NOT_FOUND"],
  ["Bedrock", notFound, "ResourceNotFoundException"],
  ["OpenAI, Groq, xAI", rate, "rate_limit_exceeded rate_limit_error requests tokens too_many_requests rate_limited"],
  ["Anthropic", rate, "rate_limit_error"],
  ["Azure", rate, "RateLimitReached TooManyRequests RateLimitExceeded"],
  ["google.rpc", rate, "RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED"],
  ["Bedrock", rate, "ThrottlingException TooManyRequestsException Throttling RequestLimitExceeded throttled"],
  [
    "Alibaba",
    rate,
    "Throttling.RateQuota Throttling.AllocationQuota Throttling.BurstRate LimitRequests limit_requests",
  ],
  ["Moonshot", rate, "rate_limit_reached_error"],
  ["Anthropic", overloaded, "overloaded_error overloaded"],
  [
    "OpenAI",
    overloaded,
    "server_is_overloaded service_unavailable_error slow_down server_overloaded engine_overloaded",
  ],
  ["Moonshot", overloaded, "engine_overloaded_error"],
  ["Bedrock", overloaded, "ServiceUnavailableException ModelNotReadyException"],
  ["Mistral", overloaded, "service_tier_capacity_exceeded capacity_exceeded"],
  ["DeepSeek finish_reason", begun, "insufficient_system_resource"],
  ["Anthropic", permission, "permission_error"],
  ["OpenAI", permission, "permission_denied insufficient_permissions unsupported_country_region_territory"],
  ["google.rpc, ErrorInfo", permission, "PERMISSION_DENIED SERVICE_DISABLED API_KEY_SERVICE_BLOCKED"],
  ["AWS", permission, "AccessDeniedException AccessDenied"],
  ["google.rpc", cancelled, "CANCELLED"],
  [
    "OpenAI, Groq, Mistral",
    invalid,
    "invalid_request_error invalid_request unsupported_value unknown_parameter unsupported_parameter",
  ],
  [
    "OpenAI",
    invalid,
    "invalid_value missing_required_parameter invalid_type unsupported_file invalid_image_file unsupported_model",
  ],
  [
    "OpenAI",
    invalid,
    "image_generation_user_error invalid_function_parameters previous_response_not_found invalid_encrypted_content",
  ],
  ["google.rpc", invalid, "INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE UNIMPLEMENTED ALREADY_EXISTS"],
  ["AWS", invalid, "ValidationException SerializationException"],
  ["xAI", invalid, "invalid-argument"],
  ["Alibaba", invalid, "InvalidParameter InvalidParameter.DataInspection"],
  ["a gateway of this package", gaveUp, "gateway_upstream_failed"],
  ["OpenAI", server, "server_error internal_server_error internal_error vector_store_timeout"],
  ["Anthropic", server, "api_error timeout_error"],
  ["google.rpc", server, "INTERNAL UNAVAILABLE DEADLINE_EXCEEDED UNKNOWN ABORTED DATA_LOSS"],
  [
    "Bedrock",
    server,
    "InternalServerException ModelStreamErrorException ModelTimeoutException ModelErrorException InternalFailure",
  ],
  ["Zhipu finish_reason", server, "network_error"],
  // MiniMax reports its codes in `base_resp`, with a status of 200 (its error-code page).
  ["MiniMax", quota, "base_resp_1008 base_resp_2056"],
  ["MiniMax", policy, "base_resp_1026 base_resp_1027"],
  ["MiniMax", auth, "base_resp_1004 base_resp_2049"],
  ["MiniMax", rate, "base_resp_1002 base_resp_1039 base_resp_1041 base_resp_2045"],
  ["MiniMax", invalid, "base_resp_1042 base_resp_2013"],
  ["MiniMax", server, "base_resp_1000 base_resp_1001 base_resp_1024 base_resp_1033"],
];

/**
 * Codes that consist of digits. They count only as the `code` of an error, as a string or a number: MiniMax's balance (1008); Zhipu's
 * account (1112, 1113), plan window (1308, 1310: hours or days until it opens), prompt (1261) and content filter (1301).
 */
const digits: ReadonlyMap<string, CodeMeaning> = new Map([
  ["1008", quota],
  ["1112", quota],
  ["1113", quota],
  ["1308", quota],
  ["1310", quota],
  ["1261", overflow],
  ["1301", policy],
]);

const splitCodes = (codes: string): ReadonlyArray<string> => codes.split(" ");
const normalizeCode = (code: string): string => code.toLowerCase().replace(/[^a-z0-9]/g, "");

const table: ReadonlyMap<string, CodeMeaning> = new Map(
  // The first row of a code counts, because rows are in the order of their rank.
  [...rows]
    .reverse()
    .flatMap(([, meaning, codes]) => splitCodes(codes).map((code) => [normalizeCode(code), meaning] as const)),
);

addKnownCodes(rows.flatMap(([, , codes]) => splitCodes(codes)));

/** Looks up a provider's code, in upper or lower case and with any separators; `com.amazon.coral.service#X` counts as `X`. */
export const lookup = (code: string): CodeMeaning | undefined => {
  const local = code.slice(code.lastIndexOf("#") + 1).replace(/:.*$/, "");
  return table.get(normalizeCode(local)) ?? digits.get(local);
};

/** [the provider, the statuses that the message may come with (none: any status, and streams), the pattern, its meaning]. */
const texts: ReadonlyArray<readonly [string, ReadonlyArray<number>, RegExp, CodeMeaning]> = [
  ["Anthropic, Bedrock", [], /\bprompt is too long\b/i, overflow],
  ["Anthropic", [], /\binput length and `?max_tokens`? exceed context limit\b/i, overflow],
  ["Gemini, Vertex", [], /\binput token count\b.{0,40}\bexceeds\b/i, overflow],
  ["OpenAI, Azure, vLLM, OpenRouter, Mistral, DeepSeek", [], /\bmaximum context length\b/i, overflow],
  ["OpenAI Responses", [], /\bexceeds the context window\b/i, overflow],
  ["xAI", [], /\bmaximum prompt length is \d/i, overflow],
  ["Groq, Cerebras", [], /\breduce the length of the messages\b/i, overflow],
  ["Cohere", [], /^too many tokens: /i, overflow],
  ["Bedrock", [], /\binput is too long for requested model\b/i, overflow],
  ["Perplexity", [], /\btotal length of all messages is too long\b/i, overflow],
  ["llama.cpp", [], /\bexceeds the available context size\b/i, overflow],
  ["LiteLLM", [], /\bContextWindowExceededError\b/, overflow],
  ["LM Studio", [], /\bgreater than the context length\b/i, overflow],
  ["GitHub Copilot", [], /\bprompt token count of \d+ exceeds the limit\b/i, overflow],
  ["Moonshot", [], /\bexceeded model token limit\b/i, overflow],
  ["MiniMax", [], /\bcontext window exceeds limit\b/i, overflow],
  ["Alibaba", [], /\bRange of input length should be\b/, overflow],
  ["Bedrock", [], /\binput tokens exceeded\b/i, overflow],
  ["Ollama", [], /\bprompt too long\b|\binput length exceeds (?:the |maximum )?context length\b/i, overflow],
  [
    "OpenAI, Groq",
    [],
    /\brequest too large for\b.{0,400}\b(?:must be reduced in order to run|reduce your message size)\b/is,
    larger,
  ],
  ["llama.cpp", [], /\binput is too large to process\. increase the physical batch size\b/i, larger],
  ["llama.cpp", [], /\b(?:image|audio|video) input is not supported\b/i, never],
  ["llama.cpp", [], /\brequires --jinja flag\b|^unsupported param: /i, never],
  ["DeepSeek, MiniMax, Zhipu", [], /\binsufficient[ _](?:account[ _])?(?:balance|credits?|funds)\b/i, quota],
  [
    "Anthropic, xAI",
    [],
    /\b(?:account|credit) balance (?:is |has been )?(?:too low|insufficient|not enough|exhausted|negative|used up)\b/i,
    quota,
  ],
  ["Zhipu, Moonshot", [], /余额不足|账户已欠费/, quota],
  ["Anthropic", [], /\bOutput blocked by content filtering policy\b/i, policy],
  ["DeepSeek", [400], /^Content Exists Risk$/, policy],
  ["xAI", [403], /\bhas used all available credits or reached its monthly spending limit\b/i, quota],
  ["xAI", [400], /^Incorrect API key provided\b/, auth],
  ["Gemini", [400], /\bAPI key (?:not valid|expired)\b/, auth],
  ["AWS", [400, 403], /\bsecurity token included in the request is (?:invalid|expired)\b/i, auth],
  ["AWS", [403], /\bSignature (?:has )?expired\b/i, auth],
  ["any OAuth gateway", [403], /\btoken\b[^.]{0,40}\bexpired\b|\bexpired\b[^.]{0,24}\btoken\b/i, auth],
];

/**
 * Looks up a provider's message.
 *
 * @param message the message of an error body
 * @param status the status that it came with; undefined inside a stream
 */
export const lookupText = (message: string, status: number | undefined): CodeMeaning | undefined =>
  texts.find(
    ([, statuses, pattern]) =>
      (statuses.length === 0 || (status !== undefined && statuses.includes(status))) && pattern.test(message),
  )?.[3];

const planLimit =
  /\b(?:usage|spend(?:ing)?|plan|subscription|session|(?:dai|week|month)ly|(?:\d{1,2}|five)[- ]hour) (?:(?:usage|token|request|message|spending) )?(?:limit|cap|allowance)s?\b/i;
const isUsedUp = /\b(?:reached|exceed(?:s|ed)?|hit|exhausted|used up|ran out|run out)\b/i;
const ofMoments = /\bper[- ](?:second|minute)\b|\b[RT]P[SM]\b/i;

/**
 * Returns true if the message or code of a refusal says that a plan's allowance is used up for hours or days ("You have reached your weekly
 * limit"). The words "quota" and "billing" alone do not prove that.
 */
export const isPlanLimitText = (words: string): boolean => {
  const spaced = words.replaceAll(/[_\s]+|(?<=[a-z])(?=[A-Z])/g, " ");
  return planLimit.test(spaced) && isUsedUp.test(spaced) && !ofMoments.test(spaced);
};
