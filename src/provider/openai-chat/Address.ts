/**
 * Recognises and addresses requests of OpenAI Chat Completions.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer, choicesByN } from "../protocol/Address.ts";

/** The address of `POST …/chat/completions`. */
export const address: Address = {
  vendor: "https://api.openai.com/v1",
  path: () => "/chat/completions",
  headers: bearer,
  claim: ({ path }) => {
    if (!path.endsWith("/chat/completions")) return undefined;
    // Azure's limits apply per deployment, regardless of the model that a request names.
    return { model: /\/deployments\/([^/]+)\/chat\/completions$/.exec(path)?.[1] ?? "" };
  },
  isRequestBody: (body) => Array.isArray(body.messages),
  choices: choicesByN,
  outputTokens: ({ max_completion_tokens, max_tokens }) => Json.natural(max_completion_tokens ?? max_tokens),
};
