/**
 * Recorded error bodies of providers, served again over a real socket to every client that exposes a body. Each client's error
 * must be classified like the response itself.
 */
import { assert, describe, it } from "@effect/vitest";
import { classifyResponse } from "../../../src/failure/FailureClassifier.ts";
import { errors, type RecordedError, read } from "../../Recordings.ts";
import { provoke } from "./clients/Client.ts";
import { clients, effect, everyone, except } from "./clients/Names.ts";
import { outcomeOf, refused, rejected, retryable, type Said } from "./Outcome.ts";
import { withServer } from "./Servers.ts";

const invalid = rejected("invalid_request", { status: 400 });
const overflow = rejected("context_overflow", { status: 400 });
const auth = rejected("auth", { status: 401 });
const missing = rejected("not_found", { status: 404 });

/** Expected outcomes by provider and file, read by hand. A file that is missing here is not tested here. */
const expectations: Readonly<Record<string, Said>> = {
  "anthropic/400.dd-trace-py.anthropic_completion_error": invalid,
  "bedrock/400.opentelemetry-python-contrib.test_converse_stream_with_invalid_model": invalid,
  "bedrock/400.pydantic-ai.test_model_name_suggestion_bedrock": invalid,
  "bedrock/400.pydantic-ai.test_multimodal_tool_return_matrix_direct-uploaded_file-image-bedrock_claude.1": invalid,
  "cohere/400.ruby_llm.chat_real_error_scenarios_cohere_command-a-03-2025_handles_context_length_exceeded_errors":
    overflow,
  "google-vertex/400.opentelemetry-python-contrib.test_generate_content_invalid_role": invalid,
  "google-vertex/400.ruby_llm.chat_real_error_scenarios_vertexai_gemini-2_5-flash_handles_context_length_exceeded_errors.1":
    overflow,
  "groq/400.pydantic-ai.test_tool_use_failed_error_with_text.0": retryable("invalid_tool_input", { status: 400 }),
  "openai/400.dd-trace-py.openai_completions_post_ec9c4d9d": invalid,
  "openai/400.openllmetry.test_image_gen_metrics.1": invalid,
  "openai/400.opentelemetry-python-contrib.test_responses_create_api_error_content_mode0": rejected("not_found", {
    status: 400,
  }),
  "openai/400.pydantic-ai.test_multimodal_tool_return_matrix_direct-url-audio-openai_responses.1": invalid,
  "openai/400.pydantic-ai.test_openai_o1_mini_system_role_developer": invalid,
  "openai/400.pydantic-ai.test_openai_responses_thinking_with_modified_history.1": invalid,
  "openai/400.ruby_llm.image_edit_functionality_with_remote_urls_rejects_edits_with_a_url_having_invalid_content_type":
    invalid,
  "perplexity/400.ruby_llm.chat_real_error_scenarios_perplexity_sonar_handles_context_length_exceeded_errors": overflow,
  "xai/400.ruby_llm.chat_error_handling_with_xai_grok-4-1-fast-non-reasoning_raises_appropriate_auth_error": rejected(
    "auth",
    { status: 400 },
  ),
  "anthropic/401.dd-trace-py.anthropic_v1_messages_beta_true_post_7a2e5960": auth,
  "anthropic/401.ruby_llm.chat_error_handling_with_anthropic_claude-haiku-4-5_raises_appropriate_auth_error": auth,
  "deepseek/401.ruby_llm.chat_error_handling_with_deepseek_deepseek-chat_raises_appropriate_auth_error": auth,
  "openai/401.dd-trace-py.chat_completion_error": auth,
  "openai/401.dd-trace-py.response_error": auth,
  "openai/401.ruby_llm.chat_error_handling_with_openai_gpt-5-nano_raises_appropriate_auth_error": auth,
  "perplexity/401.ruby_llm.chat_error_handling_with_perplexity_sonar_raises_appropriate_auth_error": auth,
  "bedrock/403.ruby_llm.chat_error_handling_with_bedrock_amazon_nova-2-lite-v1_0_raises_appropriate_auth_error":
    rejected("auth", { status: 403 }),
  "anthropic/404.pydantic-ai.test_anthropic_count_tokens_error": missing,
  "cohere/404.openllmetry.test_agent_with_multiple_tools.5": missing,
  "google-vertex/404.opentelemetry-python-contrib.test_generate_content_missing_model": missing,
  "google/404.pydantic-ai.test_model_name_suggestion_google": missing,
  "local/404.openinference.test_chat_error_records_model_name": missing,
  "openai/404.opentelemetry-python-contrib.test_async_embeddings_error_handling": missing,
  "unknown/404.openllmetry.test_dataset_operations_errors": missing,
  "azure/429.ruby_llm.chat_real_error_scenarios_azure_grok-4-1-fast-non-reasoning_handles_context_length_exceeded_errors":
    refused("rate_limited", { status: 429, retry_after_ms: 1_000 }),
  "google/429.ruby_llm.chat_real_error_scenarios_gemini_gemini-2_5-flash_handles_context_length_exceeded_errors":
    refused("rate_limited", { status: 429, retry_after_ms: 48_000 }),
  "openrouter/429.pydantic-ai.test_openrouter_errors_raised.0": refused("rate_limited", { status: 429 }),
};

/** Headers that describe the recorded transfer of a body, which is not the current one. */
const travelled = new Set(["content-encoding", "content-length", "transfer-encoding", "connection"]);

const again = ({ status, response_headers }: RecordedError, body: string): string =>
  [
    `HTTP/1.1 ${status} Recorded`,
    ...Object.entries(response_headers).flatMap(([name, value]) => (travelled.has(name) ? [] : [`${name}: ${value}`])),
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");

/** Removes the code, which some clients rename. */
const withoutCode = (outcome: ReturnType<typeof outcomeOf>) => {
  if (outcome === "no error") return outcome;
  const { code: _, ...rest } = outcome;
  return rest;
};

const overBody = except(everyone, ...effect);

describe.skipIf(errors.length === 0)("recorded error bodies, through every client", () => {
  for (const error of errors) {
    const name = error.file.replace(/^_errors\//, "").replace(/\.json$/, "");
    const expected = expectations[name];
    it.skipIf(expected === undefined)(name, async () => {
      const body = read(error.file);
      const response = classifyResponse({ status: error.status, headers: error.response_headers, body });
      const said = await withServer(
        (socket) => void socket.end(again(error, body)),
        {},
        (port) =>
          Promise.all(
            clients
              .filter((client) => overBody.includes(client.name))
              .map(async (client) => {
                const provoked = await provoke(client, { url: `http://127.0.0.1:${port}/` });
                return [client.name, withoutCode(outcomeOf(provoked))] as const;
              }),
          ),
      );
      const heard: Record<string, unknown> = Object.fromEntries(said);
      const meant: Record<string, unknown> = Object.fromEntries(overBody.map((client) => [client, expected]));
      assert.deepStrictEqual(
        { ...heard, "the response itself": withoutCode(outcomeOf({ failure: response })) },
        { ...meant, "the response itself": expected },
      );
    });
  }
});
