/**
 * Recognises and addresses requests of OpenAI Responses.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer, choicesByN, type Keeping } from "../protocol/Address.ts";

/**
 * Determines the part of a request that the provider keeps. A background job runs without its client, so it may exist as soon as the
 * request may have arrived. A stored response exists from its first event; a stored document is visible to its client only as a whole. If a
 * request does not mention `store`, the provider keeps the response, but the client did not ask for that, so it is repeated like any other.
 */
const keepingOf = (body: Json.JsonRecord, streaming: boolean): Keeping => {
  if (body.background === true) return "request";
  if (body.store !== true) return "nothing";
  return streaming ? "response" : "request";
};

/**
 * True for a streamed background response, because OpenAI continues only those by `starting_after`, for some minutes ("This response cannot
 * be streamed because it was not created with background=true"). A response that is merely stored ends with its connection and can only be
 * retrieved whole.
 */
const canResume = (body: Json.JsonRecord, streaming: boolean): boolean => streaming && body.background === true;

/** The address of `POST …/responses`. */
export const address: Address = {
  vendor: "https://api.openai.com/v1",
  path: () => "/responses",
  headers: bearer,
  claim: ({ path }) => (path.endsWith("/responses") ? { model: "" } : undefined),
  isRequestBody: ({ conversation, input, prompt }) =>
    input !== undefined || prompt !== undefined || conversation !== undefined,
  choices: choicesByN,
  outputTokens: ({ max_output_tokens }) => Json.natural(max_output_tokens),
  keeping: keepingOf,
  isResumable: canResume,
};
