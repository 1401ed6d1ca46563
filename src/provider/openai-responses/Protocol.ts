/**
 * Describes the OpenAI Responses protocol: its addresses, the requests whose responses cannot be continued, and
 * the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer, choicesByN, type Keeping } from "../protocol/Address.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { type ResumeForm, wireProtocol } from "../protocol/WireProtocol.ts";
import * as Refusals from "../seam/Refusals.ts";
import * as Resume from "../stream/Resume.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { splice } from "./Splice.ts";

/**
 * Determines the state that the provider keeps for a request. A background job runs without its client, so it may exist as soon as the
 * request may have arrived. A stored response exists from its first event; a stored document is visible to its client only as a whole. If a
 * request does not mention `store`, the provider keeps the response, but the client did not ask for that, so the request is repeated like
 * any other.
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
const address: Address = {
  family: "openai",
  examples: ["/v1/responses"],
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

/**
 * A keep-alive as OpenAI sends it. It repeats the number of the last event. So a client that later asks for the events after that number
 * misses none of the provider's own.
 *
 * This package never writes a second `response.created`, because OpenAI's helper takes it for another response. It never writes
 * `response.incomplete`, because agents take that for a complete response. Measured on 2026-11-22 with codex, copilot, opencode, pi and
 * four SDKs.
 */
const noOp: NoOp = (last) => ({
  event: "keepalive",
  data: { type: "keepalive", sequence_number: numberOf(last) ?? 0 },
});

const numberOf = (last: Json.JsonRecord | undefined): number | undefined => Json.natural(last?.sequence_number);

const type = "invalid_request_error";

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...recoveryCodeField(code) },
});

/** The code of the failed response. codex retries every other code of `response.failed`, except a few that would be untrue here. */
const failedCode = "invalid_prompt";

/**
 * Ends a stream with an error event and a failed response. SDKs throw on the error event only if its error is nested, while opencode and pi
 * retry if it is not. codex reads only the failed response.
 */
const ending: GivenUpForm["ending"] = (message, last, run) => {
  const next = (numberOf(last) ?? -1) + 1;
  const error = { type, code: failedCode, message, param: null };
  const response = { ...responseOf(last, run), status: "failed", error: { code: failedCode, message } };
  return endingOf(
    { event: "error", data: { type: "error", sequence_number: next, error } },
    { event: "response.failed", data: { type: "response.failed", sequence_number: next + 1, response } },
  );
};

/** The response in `response.failed`, under the id that the client knows, because OpenAI's helper checks the id. */
const responseOf = (last: Json.JsonRecord | undefined, { id, model }: Parameters<NoOp>[1]) => {
  const known = Json.record(last?.response);
  return {
    id: Json.string(known?.id) || id,
    object: "response",
    created_at: known?.created_at ?? 0,
    model: Json.string(known?.model) || (model ?? ""),
    output: [],
  };
};

/**
 * Requests that rule out continuing their response.
 *
 * A provider discards a response only if the request says `store: false`. Otherwise a second response would be stored in addition to the
 * first, under an id that the client never received. `prompt` is allowed, because a template precedes the input.
 */
const seamRefusals: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "server_state",
    ({ background, conversation, previous_response_id, store }) =>
      store !== false || [background, conversation, previous_response_id].some(Refusals.isSet),
  ],
  ["structured_output", (body) => Refusals.isStructured(Json.record(body.text)?.format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ n }) => Refusals.isSeveral(n)],
  [
    "logprobs",
    ({ include, top_logprobs }) =>
      Refusals.isCount(top_logprobs) || Json.list(include).some((it) => Json.string(it).endsWith(".logprobs")),
  ],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.isSet(audio)],
  ["forced_tool", ({ tool_choice }) => Refusals.isCallDemanded(tool_choice)],
];

/** Resumes with `GET …/responses/{id}?stream=true&starting_after=N`. */
const resume: ResumeForm = {
  first: () => Resume.responses(),
  behind: (url, text) => {
    const cursor = Resume.parseResponses(text);
    if (cursor === undefined) return undefined;
    return { url: Resume.responsesUrl(url, cursor).href, verifier: Resume.responses(cursor) };
  },
};

/** The OpenAI Responses wire protocol. */
export const openAiResponses = wireProtocol(protocol, {
  name: "OpenAI Responses",
  address,
  continuation: { build, turn },
  seamRefusal: (body) => Refusals.refusalOf(seamRefusals, body),
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  // A job that is still running has no end yet. Another request may have started it in the background.
  eventsOf: (response) =>
    response.status === "queued" || response.status === "in_progress" ? [] : [{ type: "response.completed", response }],
  resume,
  splice,
});
