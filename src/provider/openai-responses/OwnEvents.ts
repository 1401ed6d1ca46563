/**
 * Writes the events of our own that clients of Responses take: a keep-alive, and an error that all of them read.
 *
 * Never a second `response.created`, which OpenAI's helper takes for another response, nor `response.incomplete`, which agents
 * take for the whole. Measured on 2026-11-22 with codex, copilot, opencode, pi and four SDKs.
 */
import * as Json from "../../domain/Json.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, told } from "../protocol/StreamEvent.ts";

/**
 * A keep-alive as OpenAI sends it. It repeats the number of the last event, so that a client which asks for the rest of the
 * response behind a number misses none of the provider's own.
 */
export const noOp: NoOp = (last) => ({
  event: "keepalive",
  data: { type: "keepalive", sequence_number: numberOf(last) ?? 0 },
});

const numberOf = (last: Json.JsonRecord | undefined): number | undefined => Json.natural(last?.sequence_number);

const type = "invalid_request_error";

/** An error response of Responses. */
export const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...told(code) },
});

/** codex asks again for every code of `response.failed` but this one and a few that say what is not true. */
const failedCode = "invalid_prompt";

/**
 * An error event and a failed response. SDKs throw at the first only where its error is nested, opencode and pi ask again where
 * it is not; codex reads the second only.
 */
export const ending: GivenUpForm["ending"] = (message, last, run) => {
  const next = (numberOf(last) ?? -1) + 1;
  const error = { type, code: failedCode, message, param: null };
  const response = { ...responseOf(last, run), status: "failed", error: { code: failedCode, message } };
  return endingOf(
    { event: "error", data: { type: "error", sequence_number: next, error } },
    { event: "response.failed", data: { type: "response.failed", sequence_number: next + 1, response } },
  );
};

/** A response as `response.failed` has it, under the id that the client knows: OpenAI's helper looks at it. */
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
