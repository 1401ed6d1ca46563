/**
 * Converts the finish and the usage of a response to the terms of `effect/ai`.
 */
import type { Response } from "effect/ai";
import * as Json from "../../domain/Json.ts";
import type { UsageForm } from "../../provider/protocol/WireProtocol.ts";

/** Finish reasons by the provider's word, in lower case. The words of all `WrittenProtocol`s do not conflict, so one table is enough. */
const reasons: ReadonlyMap<string, Response.FinishReason> = new Map([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["completed", "stop"],
  ["done", "stop"],
  ["eos", "stop"],
  ["tool_calls", "tool-calls"],
  ["tool_use", "tool-calls"],
  ["function_call", "tool-calls"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["max_output_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["incomplete", "length"],
  ["content_filter", "content-filter"],
  ["refusal", "content-filter"],
  ["content_filtered", "content-filter"],
  ["guardrail_intervened", "content-filter"],
  ["safety", "content-filter"],
  ["recitation", "content-filter"],
  ["blocklist", "content-filter"],
  ["prohibited_content", "content-filter"],
  ["spii", "content-filter"],
  ["image_safety", "content-filter"],
  ["pause_turn", "pause"],
]);

/**
 * Returns the finish reason of a response.
 *
 * @param finish the provider's own word
 * @param called true if a complete call of the caller's tools arrived; then `tool-calls` replaces `stop` and unknown words, because the
 *   decoder has validated the call
 */
export const finishReason = (finish: string | undefined, called: boolean): Response.FinishReason => {
  const reason = reasons.get((finish ?? "").toLowerCase()) ?? "other";
  return called && (reason === "stop" || reason === "other") ? "tool-calls" : reason;
};

type Usage = Response.FinishPartEncoded["usage"];

/**
 * Returns the usage of a response. The totals include the counts that a provider reports separately.
 *
 * @param form the counts that the provider reports separately
 * @param told the provider's usage object, in its last state
 */
export const usageOf = ({ cachedApart, reasoningApart }: UsageForm, reported: Json.JsonRecord): Usage => {
  const count = (...values: ReadonlyArray<unknown>): number | undefined => values.map(Json.natural).find(isKnown);
  const inputs = Json.record(reported.prompt_tokens_details) ?? Json.record(reported.input_tokens_details);
  const outputs = Json.record(reported.completion_tokens_details) ?? Json.record(reported.output_tokens_details);
  const total = count(reported.prompt_tokens, reported.input_tokens, reported.promptTokenCount, reported.inputTokens);
  const cacheRead = count(
    inputs?.cached_tokens,
    reported.cache_read_input_tokens,
    reported.cachedContentTokenCount,
    reported.cacheReadInputTokens,
  );
  const cacheWrite = count(reported.cache_creation_input_tokens, reported.cacheWriteInputTokens);
  const reasoning = count(outputs?.reasoning_tokens, reported.thoughtsTokenCount);
  const output = count(
    reported.completion_tokens,
    reported.output_tokens,
    reported.candidatesTokenCount,
    reported.outputTokens,
  );
  const input = cachedApart ? sum(total, cacheRead, cacheWrite) : total;
  const written = reasoningApart ? sum(output, reasoning) : output;
  return {
    inputTokens: {
      ...optionalField("total", input),
      ...optionalField("uncached", cachedApart ? total : subtract(input, cacheRead)),
      ...optionalField("cacheRead", cacheRead),
      ...optionalField("cacheWrite", cacheWrite),
    },
    outputTokens: {
      ...optionalField("total", written),
      ...optionalField("text", subtract(written, reasoning)),
      ...optionalField("reasoning", reasoning),
    },
  };
};

const isKnown = (value: number | undefined): value is number => value !== undefined;

const optionalField = <Name extends string>(name: Name, value: number | undefined): Partial<Record<Name, number>> =>
  // The record contains exactly this name, so the cast is safe.
  value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, number>>);

const sum = (...values: ReadonlyArray<number | undefined>): number | undefined => {
  const known = values.filter(isKnown);
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0);
};

const subtract = (total: number | undefined, part: number | undefined): number | undefined =>
  total === undefined ? undefined : Math.max(0, total - (part ?? 0));
