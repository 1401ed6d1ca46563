/**
 * Recognises and addresses requests of Gemini, which name the model and streaming in the path.
 */
import * as Json from "../../domain/Json.ts";
import type { Address, Claim, Target } from "../protocol/Address.ts";

/** Without `alt=sse`, Gemini streams one JSON array. An array has no events, so such a request cannot be recovered. */
const claim = ({ path, query }: Target): Claim | undefined => {
  const [, model = "", call] = /\/models\/([^/]+):(\w+)$/.exec(path) ?? [];
  if (call === "generateContent") return { model, streaming: false };
  return call === "streamGenerateContent" && query.get("alt") === "sse" ? { model, streaming: true } : undefined;
};

/** The address of `POST …/models/MODEL:streamGenerateContent?alt=sse`. */
export const address: Address = {
  vendor: "https://generativelanguage.googleapis.com/v1beta",
  path: (model) => `/models/${encodeURIComponent(model)}:streamGenerateContent`,
  query: { alt: "sse" },
  headers: (key) => (key === undefined ? {} : { "x-goog-api-key": key }),
  claim,
  isRequestBody: ({ contents }) => contents !== undefined,
  choices: (body) => Json.natural(Json.record(body.generationConfig ?? body.generation_config)?.candidateCount),
  outputTokens: (body) => {
    const { maxOutputTokens, max_output_tokens } = Json.record(body.generationConfig ?? body.generation_config) ?? {};
    return Json.natural(maxOutputTokens ?? max_output_tokens);
  },
};
