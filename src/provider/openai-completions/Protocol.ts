/**
 * Describes text completions and fill-in-the-middle (FIM): their addresses, and the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { refusal } from "../continuation/Input.ts";
import { openAiChat } from "../openai-chat/Protocol.ts";
import { type Address, bearer, choicesByN } from "../protocol/Address.ts";
import type { NoOp } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { protocol } from "./Decode.ts";

/** Every prompt of a request has its own choices. */
const choices = (body: Json.JsonRecord): number | undefined => {
  const prompts = Json.list(body.prompt).filter((prompt) => typeof prompt === "string").length;
  const each = choicesByN(body);
  return prompts < 2 ? each : prompts * (each ?? 1);
};

/** The addresses of `POST …/completions`, `…/fim/completions`, and llama.cpp's `/completion` and `/infill`. */
const address: Address = {
  family: "openai",
  examples: ["/v1/completions", "/v1/fim/completions", "/infill"],
  vendor: "https://api.openai.com/v1",
  path: () => "/completions",
  headers: bearer,
  claim: ({ path }) => {
    if (!/(?:(?<!\/chat)\/completions?|\/infill)$/.test(path)) return undefined;
    return { model: /\/deployments\/([^/]+)\/completions$/.exec(path)?.[1] ?? "" };
  },
  isRequestBody: ({ input_prefix, prompt }) => prompt !== undefined || input_prefix !== undefined,
  choices,
  outputTokens: ({ max_tokens, n_predict }) => Json.natural(max_tokens ?? n_predict),
};

/** An event without text, in the form of the last event. */
const noOp: NoOp = (last, run) => {
  if (last?.stop === false) return { data: { content: "", stop: false } };
  const [choice] = Json.list(last?.choices);
  if (Json.record(choice)?.delta !== undefined) return openAiChat.noOp(last, run);
  return {
    data: {
      ...{ id: last?.id ?? run.id, object: "text_completion", created: last?.created ?? 0 },
      model: last?.model ?? run.model ?? "",
      choices: [{ index: 0, text: "", logprobs: null, finish_reason: null }],
    },
  };
};

/** The wire protocol of text completions. */
export const openAiCompletions = wireProtocol(protocol, {
  name: "Completions and FIM",
  address,
  continuation: {
    build: () => refusal("invalid", "prompt", "a completion has no messages to continue"),
    turn: openAiChat.continuation.turn,
  },
  seamRefusal: () => "no_seam",
  noOp,
  givenUp: openAiChat.givenUp,
  takesComments: true,
  usage: openAiChat.usage,
  eventsOf: (document) => [document],
});
