/**
 * Describes the Google Gemini protocol: its addresses, the requests whose responses cannot be continued, and
 * the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import type { Address, Claim, Target } from "../protocol/Address.ts";
import { encodeEvent, endingPauseMs, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import * as Refusals from "../seam/Refusals.ts";
import { build, fieldOf, requestIn, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { splice } from "./Splice.ts";

/** Without `alt=sse`, Gemini streams one JSON array. An array has no events, so such a request cannot be recovered. */
const claim = ({ path, query }: Target): Claim | undefined => {
  const [, model = "", call] = /\/models\/([^/]+):(\w+)$/.exec(path) ?? [];
  if (call === "generateContent") return { model, streaming: false };
  return call === "streamGenerateContent" && query.get("alt") === "sse" ? { model, streaming: true } : undefined;
};

/** The address of `POST …/models/MODEL:streamGenerateContent?alt=sse`. */
const address: Address = {
  family: "gemini",
  examples: [
    "/v1beta/models/M:streamGenerateContent?alt=sse",
    "/v1/projects/P/locations/L/publishers/google/models/M:streamGenerateContent?alt=sse",
  ],
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

/**
 * A part with empty text.
 *
 * The events that this package writes are never comments, because gemini-cli then misreads the stream. They never have a `finishReason`,
 * because gemini-cli takes that for a complete response. Measured on 2026-11-22 with gemini-cli and three SDKs.
 */
const noOp: NoOp = () => ({
  data: { candidates: [{ content: { parts: [{ text: "" }], role: "model" }, index: 0 }] },
});

/** The status that keeps clients from retrying. */
const status = "FAILED_PRECONDITION";

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code, httpStatus) => ({
  error: { code: httpStatus, message, status, ...recoveryCodeField(code) },
});

/** Pause after the line of bare JSON, in milliseconds: gemini-cli reads the line only if it arrives separately. */
const bareLinePauseMs = 100;

/** Ends a stream with a line of bare JSON in a separate write, for Google's SDK, and with the same JSON as data, for the AI SDK. */
const ending: GivenUpForm["ending"] = (message) => {
  const data = { error: { code: 400, message, status } };
  return [
    { text: `\n\n${JSON.stringify(data)}\n`, pauseMs: bareLinePauseMs },
    { text: `\n${encodeEvent({ data })}`, pauseMs: endingPauseMs },
  ];
};

/**
 * Requests that rule out continuing their response. The API accepts every field in two spellings. The mode `VALIDATED` is allowed: like
 * `AUTO`, it lets the model choose between text and a call.
 */
const seamRefusals: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "structured_output",
    (request) => {
      const config = configOf(request);
      const type = Json.string(fieldOf(config, "responseMimeType"));
      return (
        (type !== "" && type !== "text/plain") ||
        ["responseSchema", "responseJsonSchema", "_responseJsonSchema", "responseFormat"].some((name) =>
          Refusals.isSet(fieldOf(config, name)),
        )
      );
    },
  ],
  ["several_choices", (request) => Refusals.isSeveral(fieldOf(configOf(request), "candidateCount"))],
  [
    "logprobs",
    (request) => {
      const config = configOf(request);
      return Refusals.isSet(fieldOf(config, "responseLogprobs")) || Refusals.isCount(config.logprobs);
    },
  ],
  [
    "not_text",
    (request) => {
      const config = configOf(request);
      return (
        Refusals.isNotText(fieldOf(config, "responseModalities")) || Refusals.isSet(fieldOf(config, "speechConfig"))
      );
    },
  ],
  [
    "forced_tool",
    (request) => {
      const tools = Json.record(fieldOf(request, "toolConfig")) ?? {};
      const mode = fieldOf(Json.record(fieldOf(tools, "functionCallingConfig")) ?? {}, "mode");
      return Json.string(mode).toUpperCase() === "ANY";
    },
  ],
];

const configOf = (request: Json.JsonRecord): Json.JsonRecord => Json.record(fieldOf(request, "generationConfig")) ?? {};

/** The Google Gemini wire protocol. */
export const googleGemini = wireProtocol(protocol, {
  name: "Google Gemini",
  address,
  continuation: { build, turn },
  seamRefusal: (request) => Refusals.refusalOf(seamRefusals, requestIn(request)),
  noOp,
  givenUp: { document, ending },
  takesComments: false,
  usage: { cachedApart: false, reasoningApart: true },
  // A document has the same shape as a chunk.
  eventsOf: (document) => [document],
  splice,
});
