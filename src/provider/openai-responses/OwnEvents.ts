/**
 * Writes this package's own events for clients of Responses: a keep-alive, and an error that all of them read.
 *
 * It never writes a second `response.created`, because OpenAI's helper takes it for another response. It never writes
 * `response.incomplete`, because agents take it for a complete response. Measured on 2026-11-22 with codex, copilot, opencode, pi and four
 * SDKs.
 */
import * as Json from "../../domain/Json.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";

/**
 * A keep-alive as OpenAI sends it. It repeats the number of the last event. So a client that later asks for the events after that number
 * misses none of the provider's own.
 */
export const noOp: NoOp = (last) => ({
  event: "keepalive",
  data: { type: "keepalive", sequence_number: numberOf(last) ?? 0 },
});

const numberOf = (last: Json.JsonRecord | undefined): number | undefined => Json.natural(last?.sequence_number);

const type = "invalid_request_error";

/** The body of an error response. */
export const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...recoveryCodeField(code) },
});

/** The code of the failed response. codex retries every other code of `response.failed`, except a few that would be untrue here. */
const failedCode = "invalid_prompt";

/**
 * Ends a stream with an error event and a failed response. SDKs throw on the error event only if its error is nested, while opencode and pi
 * retry if it is not. codex reads only the failed response.
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
