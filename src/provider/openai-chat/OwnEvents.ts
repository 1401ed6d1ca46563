/**
 * Writes the events of our own that clients of Chat Completions take: a delta with nothing in it, and an error.
 *
 * Never an object without `choices` but an error: OpenAI's own helper throws at one, and the AI SDK makes four errors of it.
 * Measured on 2026-11-22 with six agents and five SDKs.
 */
import type * as Json from "../../domain/Json.ts";
import { documentType, endingOf, type GivenUpForm, type NoOp, told } from "../protocol/StreamEvent.ts";

/**
 * A delta with nothing in it, of the response that has begun. The first one has the role, as a provider's first delta has: behind
 * one without, LangChain loses the calls of the response.
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

/** The type is what tells clients that asking again is of no use: `server_error` is asked again by three of them. */
const type = "invalid_request_error";

/** An error response of Chat Completions. */
export const document: GivenUpForm["document"] = (message, code) => ({
  error: { message, type: documentType, param: null, code: documentType, ...told(code) },
});

/** One error chunk. */
export const ending: GivenUpForm["ending"] = (message) =>
  endingOf({ data: { error: { message, type, param: null, code: type } } });
