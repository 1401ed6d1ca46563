/**
 * Describes Gemini's Interactions API: its addresses, the events that this package itself writes, and the resumption of an interaction.
 */
import * as Json from "../../domain/Json.ts";
import type { Address, Keeping } from "../protocol/Address.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { type ResumeForm, wireProtocol } from "../protocol/WireProtocol.ts";
import { build, turn } from "./Continue.ts";
import * as Cursor from "./Cursor.ts";
import { protocol } from "./Decode.ts";

/**
 * Determines the state that the provider keeps for a request. A background interaction and an agent run without their client, so they may
 * exist as soon as the request may have arrived. If a request does not mention `store`, the provider keeps the interaction, but the client
 * did not ask for that, so the request is repeated like any other.
 */
const stateOf = ({ agent, background, store }: Json.JsonRecord, streaming: boolean): Keeping => {
  if (background === true || Json.string(agent) !== "") return "request";
  const stored: Keeping = streaming ? "response" : "request";
  return store === true ? stored : "nothing";
};

/** True for a streamed background interaction that is stored, because only such an interaction goes on without its connection. */
const canResume = ({ background, store }: Json.JsonRecord, streaming: boolean): boolean =>
  streaming && background === true && store !== false;

/** The address of `POST …/interactions`. */
const address: Address = {
  family: "gemini",
  examples: ["/v1beta/interactions", "/v1beta1/projects/P/locations/L/interactions"],
  vendor: "https://generativelanguage.googleapis.com/v1beta",
  path: () => "/interactions",
  headers: (key) => (key === undefined ? {} : { "x-goog-api-key": key }),
  claim: ({ path }) => (path.endsWith("/interactions") ? { model: "" } : undefined),
  isRequestBody: ({ agent, input, model }) => input !== undefined && Json.string(model ?? agent) !== "",
  choices: () => undefined,
  outputTokens: ({ generation_config }) => Json.natural(Json.record(generation_config)?.max_output_tokens),
  keeping: stateOf,
  isResumable: canResume,
};

/** A status as the API reports it between other events. */
const noOp: NoOp = (last) => ({
  event: "interaction.status_update",
  data: {
    interaction_id: Json.string(Json.record(last?.interaction)?.id) || Json.string(last?.interaction_id),
    status: "in_progress",
    event_type: "interaction.status_update",
  },
});

/** The body of an error response. */
const document: GivenUpForm["document"] = (message, code) => ({
  error: { code: documentType, message, ...recoveryCodeField(code) },
});

/**
 * Ends a stream with an error event. It is never an `interaction.completed` with the status `failed`, because a client that stops at that
 * event could take the response for complete.
 */
const ending: GivenUpForm["ending"] = (message) =>
  endingOf({ event: "error", data: { error: { code: "invalid_request", message }, event_type: "error" } });

/** Resumes with `GET …/interactions/ID?stream=true&last_event_id=EVENT`. */
const resume: ResumeForm = {
  first: () => Cursor.verifier(),
  behind: (url, text) => {
    const cursor = Cursor.parse(text);
    return cursor === undefined ? undefined : { url: Cursor.addressOf(url, cursor), verifier: Cursor.verifier(cursor) };
  },
};

/** Gemini's Interactions wire protocol. */
export const geminiInteractions = wireProtocol(protocol, {
  name: "Gemini Interactions",
  address,
  continuation: { build, turn },
  // No splice writes this protocol's events, so shown text is never continued.
  seamRefusal: () => "no_seam",
  noOp,
  givenUp: { document, ending },
  takesComments: false,
  usage: { cachedApart: false, reasoningApart: true },
  eventsOf: (interaction) => eventsOf(interaction),
  resume,
});

/** Converts a document to events. An interaction that still runs has no end yet. */
const eventsOf = ({ id, outputs, status, steps, usage }: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> => {
  if (status === "queued" || status === "in_progress") return [];
  return [
    ...Json.list(steps ?? outputs).flatMap((step, index) => [
      { event_type: "step.start", index, step },
      { event_type: "step.stop", index },
    ]),
    { event_type: "interaction.completed", interaction: { id, status, usage } },
  ];
};
