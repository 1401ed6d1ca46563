/**
 * Describes Code Assist, which gemini-cli calls for users with a Google account: Gemini's protocol in an envelope.
 *
 * A request is `{ model, project, user_prompt_id, request }` and an event `{ response, traceId }`, where `request` and `response` are
 * Gemini's own (gemini-cli, packages/core/src/code_assist). Decoder, continuation and splice are Gemini's and read the envelope themselves.
 */
import * as Json from "../../domain/Json.ts";
import { googleGemini } from "../gemini/Protocol.ts";
import { type Address, bearer, type Claim, type Target } from "../protocol/Address.ts";
import { endingOf, type GivenUpForm } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { protocol } from "./Decode.ts";

const claim = ({ path, query }: Target): Claim | undefined => {
  const call = /\/v1internal:(\w+)$/.exec(path)?.[1];
  if (call === "generateContent") return { model: "", streaming: false };
  return call === "streamGenerateContent" && query.get("alt") === "sse" ? { model: "", streaming: true } : undefined;
};

const requestIn = (body: Json.JsonRecord): Json.JsonRecord => Json.record(body.request) ?? {};

/** The address of `POST /v1internal:streamGenerateContent?alt=sse`. */
const address: Address = {
  family: "code-assist",
  examples: ["/v1internal:streamGenerateContent?alt=sse"],
  vendor: "https://cloudcode-pa.googleapis.com",
  path: () => "/v1internal:streamGenerateContent",
  query: { alt: "sse" },
  headers: bearer,
  claim,
  isRequestBody: (body) => googleGemini.address.isRequestBody(requestIn(body)),
  requestIn,
  choices: (body) => googleGemini.address.choices(requestIn(body)),
  outputTokens: (body) => googleGemini.address.outputTokens?.(requestIn(body)),
};

/**
 * Ends a stream with an event that carries the error, as Google's servers do. gemini-cli reads only the `response` of an event, so it
 * misses the finish and repeats the request. The repeat then gets the error document.
 */
const ending: GivenUpForm["ending"] = (message) =>
  endingOf({ data: { error: { code: 400, message, status: "FAILED_PRECONDITION" } } });

/** The wire protocol of Code Assist. */
export const codeAssist = wireProtocol(protocol, {
  name: "Google Code Assist",
  address,
  continuation: googleGemini.continuation,
  seamRefusal: googleGemini.seamRefusal,
  noOp: (last, run) => ({ data: { response: googleGemini.noOp(last, run).data } }),
  givenUp: { document: googleGemini.givenUp.document, ending },
  // gemini-cli skips every line that is neither data nor blank.
  takesComments: true,
  usage: googleGemini.usage,
  eventsOf: (document) => [document],
  ...(googleGemini.splice === undefined ? {} : { splice: googleGemini.splice }),
});
