/**
 * Recognises and addresses requests of Anthropic Messages.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, type Claim, choicesByN, type Target } from "../protocol/Address.ts";

/** The API version that this folder reads and writes. */
const version = { "anthropic-version": "2023-06-01" };

/** Accepts Anthropic's own path, other `/messages` paths whose requests have the header of its API, and Claude on Vertex AI. */
const claim = ({ has, path }: Target): Claim | undefined => {
  if (path.endsWith("/v1/messages") || (path.endsWith("/messages") && has("anthropic-version"))) return { model: "" };
  const model = /\/models\/([^/]+):(?:streamRawPredict|rawPredict)$/.exec(path)?.[1];
  return model === undefined ? undefined : { model };
};

/** The address of `POST …/messages`. */
export const address: Address = {
  vendor: "https://api.anthropic.com/v1",
  path: () => "/messages",
  headers: (key) => ({ ...version, ...(key === undefined ? {} : { "x-api-key": key }) }),
  claim,
  isRequestBody: (body) => Array.isArray(body.messages),
  choices: choicesByN,
  outputTokens: ({ max_tokens }) => Json.natural(max_tokens),
};
