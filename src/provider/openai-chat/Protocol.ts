/**
 * Describes the OpenAI Chat Completions protocol: its addresses, the requests whose responses cannot be continued, and
 * the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer, choicesByN } from "../protocol/Address.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import * as Refusals from "../seam/Refusals.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { splice } from "./Splice.ts";

/** The address of `POST …/chat/completions`. */
const address: Address = {
  family: "openai",
  examples: ["/v1/chat/completions", "/openai/deployments/D/chat/completions"],
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

/**
 * An empty delta of the current response. The first one has the role, like a provider's first delta, because without the role LangChain
 * loses the calls of the response.
 *
 * Every event that this package writes has `choices`, except errors. Without it, OpenAI's own helper throws, and the AI SDK reports four
 * errors. Measured on 2026-11-22 with six agents and five SDKs.
 */
const noOp: NoOp = (last, run) => {
  const delta = last === undefined ? { role: "assistant" } : {};
  return { data: { ...namesOf(last, run), choices: [{ index: 0, delta, finish_reason: null }] } };
};

const namesOf = (last: Json.JsonRecord | undefined, { id, model }: Parameters<NoOp>[1]) => ({
  id: last?.id ?? id,
  object: "chat.completion.chunk",
  created: last?.created ?? 0,
  model: last?.model ?? model ?? "",
});

/** The error type that keeps clients from retrying. Three of them retry `server_error`. */
const type = "invalid_request_error";

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...recoveryCodeField(code) },
});

/** Ends a stream with one error chunk. */
const ending: GivenUpForm["ending"] = (message) =>
  endingOf({ data: { error: { message, type, param: null, code: type } } });

/**
 * Requests that rule out continuing their response.
 *
 * `prediction` is allowed, because it makes tokens faster but not different. `web_search_options` is allowed, because a model that searches
 * does so again before it continues, and the splice writes the annotations of its sources. Frequency and presence penalties are allowed,
 * although they may keep a model from repeating the anchor. The seam is then unproven.
 */
const seamRefusals: ReadonlyArray<Refusals.RefusalRow> = [
  ["structured_output", (body) => Refusals.isStructured(body.response_format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ best_of, n }) => Refusals.isSeveral(n) || Refusals.isSeveral(best_of)],
  ["logprobs", ({ logprobs, top_logprobs }) => Refusals.isSet(logprobs) || Refusals.isCount(top_logprobs)],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.isSet(audio)],
  ["server_state", ({ store }) => store === true],
  [
    "forced_tool",
    ({ function_call, tool_choice }) => Refusals.isCallDemanded(tool_choice) || isFunctionDemanded(function_call),
  ],
];

/** True if the legacy `function_call` is an object, which names the function to call. */
const isFunctionDemanded = (choice: unknown): boolean => typeof choice === "object" && choice !== null;

/** The OpenAI Chat Completions wire protocol. */
export const openAiChat = wireProtocol(protocol, {
  name: "OpenAI Chat Completions",
  address,
  continuation: { build, turn },
  seamRefusal: (body) => Refusals.refusalOf(seamRefusals, body),
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  // A document has the same shape as a chunk.
  eventsOf: (document) => [document],
  splice,
});
