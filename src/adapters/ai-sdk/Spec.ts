/**
 * Names the shapes of the AI SDK's language model specification that this adapter meets: `v4`, that of `ai` 7.
 *
 * They are read from `ai`'s own types; nothing of it is loaded.
 */
import type { LanguageModel } from "ai";

/** A language model as the provider packages make it. */
export type Model = Extract<Exclude<LanguageModel, string>, { readonly specificationVersion: "v4" }>;

/** What one call asks for. */
export type CallOptions = Parameters<Model["doStream"]>[0];

/** What `doStream` gives. */
export type StreamResult = Awaited<ReturnType<Model["doStream"]>>;

/** What `doGenerate` gives. */
export type GenerateResult = Awaited<ReturnType<Model["doGenerate"]>>;

/** One part of a model's stream. */
export type StreamPart = StreamResult["stream"] extends ReadableStream<infer P> ? P : never;

/** Why a model finished: the SDK's own word and the provider's. */
export type FinishReason = Extract<StreamPart, { readonly type: "finish" }>["finishReason"];

/** A tool as a request exposes it. */
export type ExposedTool = NonNullable<CallOptions["tools"]>[number];
