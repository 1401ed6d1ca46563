/**
 * Describes Ollama's own protocol: its addresses, and the events that this package itself writes.
 */
import * as Json from "../../domain/Json.ts";
import { type Address, bearer } from "../protocol/Address.ts";
import { endingPauseMs, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { framing } from "../stream/Ndjson.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";

/** The addresses of `POST /api/chat` and `POST /api/generate`. A response streams unless the body says `stream: false`. */
const address: Address = {
  family: "ollama",
  examples: ["/api/chat", "/api/generate"],
  vendor: "http://127.0.0.1:11434",
  path: () => "/api/chat",
  headers: bearer,
  claim: ({ path }) => (/\/api\/(?:chat|generate)$/.test(path) ? { model: "" } : undefined),
  isRequestBody: (body) => Json.string(body.model) !== "",
  isStreaming: ({ stream }) => stream !== false,
  choices: () => undefined,
  outputTokens: ({ options }) => Json.natural(Json.record(options)?.num_predict),
};

/**
 * A line without text. Before the first line of a response, it has the fields of both endpoints, and every client reads only its own. It is
 * never a blank line, because Ollama's clients parse each line as JSON. Its time is one that Go's client can parse.
 */
const noOp: NoOp = (last, { model }) => ({
  data: {
    model: last?.model ?? model ?? "",
    created_at: last?.created_at ?? "1970-01-01T00:00:00Z",
    ...(last?.response === undefined ? { message: { role: "assistant", content: "" } } : {}),
    ...(last?.message === undefined ? { response: "" } : {}),
    done: false,
  },
});

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({ error: message, ...recoveryCodeField(code) });

/** Ends a stream with a line that carries an error, as Ollama does. Its clients throw at this line. */
const ending: GivenUpForm["ending"] = (message) => [
  { text: framing.encode({ data: JSON.stringify({ error: message }) }), pauseMs: endingPauseMs },
];

/** Ollama's own wire protocol. */
export const ollama = wireProtocol(protocol, {
  name: "Ollama",
  address,
  continuation: { build, turn },
  // The template of the model decides if a trailing assistant message is continued, so no seam can be proven.
  seamRefusal: () => "no_seam",
  noOp,
  givenUp: { document, ending },
  takesComments: false,
  usage: { cachedApart: false, reasoningApart: false },
  // A document has the same shape as a line.
  eventsOf: (document) => [document],
});
