/**
 * Writes this package's own events for clients of Chat Completions: an empty delta and an error.
 *
 * Every object except an error has `choices`. Without it, OpenAI's own helper throws, and the AI SDK reports four errors. Measured on
 * 2026-11-22 with six agents and five SDKs.
 */
import type * as Json from "../../domain/Json.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";

/**
 * An empty delta of the current response. The first one has the role, like a provider's first delta, because without the role LangChain
 * loses the calls of the response.
 */
export const noOp: NoOp = (last, run) => {
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
export const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...recoveryCodeField(code) },
});

/** Ends a stream with one error chunk. */
export const ending: GivenUpForm["ending"] = (message) =>
  endingOf({ data: { error: { message, type, param: null, code: type } } });
