/**
 * Says where requests of Anthropic Messages go.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, type Claim, choicesByN, type Target } from "../protocol/Address.ts";

/** The version of the API that the decoder and the writer of this folder are made for. */
const version = { "anthropic-version": "2023-06-01" };

/** Anthropic's own path, one that only the header of its API tells from another's, and Claude on Vertex AI. */
const claim = ({ has, path }: Target): Claim | undefined => {
  if (path.endsWith("/v1/messages") || (path.endsWith("/messages") && has("anthropic-version"))) return { model: "" };
  const model = /\/models\/([^/]+):(?:streamRawPredict|rawPredict)$/.exec(path)?.[1];
  return model === undefined ? undefined : { model };
};

/** `POST …/messages`. */
export const address: Address = {
  vendor: "https://api.anthropic.com/v1",
  path: () => "/messages",
  headers: (key) => ({ ...version, ...(key === undefined ? {} : { "x-api-key": key }) }),
  claim,
  speaks: (body) => Array.isArray(body.messages),
  choices: choicesByN,
  outputTokens: ({ max_tokens }) => Json.natural(max_tokens),
};
