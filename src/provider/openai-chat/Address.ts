/**
 * Says where requests of OpenAI Chat Completions go.
 */
import { type Address, bearer, choicesByN } from "../protocol/Address.ts";

/** `POST …/chat/completions`. */
export const address: Address = {
  vendor: "https://api.openai.com/v1",
  keyEnv: "OPENAI_API_KEY",
  version: "/v1",
  path: () => "/chat/completions",
  headers: bearer,
  claim: ({ path }) => (path.endsWith("/chat/completions") ? { model: "" } : undefined),
  speaks: (body) => Array.isArray(body.messages),
  choices: choicesByN,
};
