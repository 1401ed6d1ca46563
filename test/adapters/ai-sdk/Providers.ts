/**
 * The AI SDK's own provider packages, pointed at a fault server.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const key = { apiKey: "a key of a test" };

/** Every provider of the matrix: its name and how its model is made. */
export const providers = {
  "openai chat": (url: string) => createOpenAI({ ...key, baseURL: `${url}/v1` }).chat("fault-model"),
  "openai responses": (url: string) => createOpenAI({ ...key, baseURL: `${url}/v1` }).responses("fault-model"),
  anthropic: (url: string) => createAnthropic({ ...key, baseURL: `${url}/v1` })("fault-model"),
  google: (url: string) => createGoogle({ ...key, baseURL: `${url}/v1beta` })("fault-model"),
  "openai-compatible": (url: string) =>
    createOpenAICompatible({ ...key, name: "compatible", baseURL: `${url}/v1` })("fault-model"),
} as const;

export type ProviderName = keyof typeof providers;

/** The names, in the order of the matrix. */
// `Object.keys` forgets which keys it gives.
export const providerNames = Object.keys(providers) as ReadonlyArray<ProviderName>;
