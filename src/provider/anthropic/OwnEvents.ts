/**
 * Writes this package's own events for clients of Messages: a ping and an error.
 *
 * It only writes events that Messages has, because the AI SDK's provider fails on any other before `message_start`. Measured on 2026-11-22
 * with claude-code, opencode, copilot, pi and three SDKs.
 */
import {
  documentType,
  endingOf,
  type GivenUpForm,
  type NoOp,
  recoveryCodeField,
  type StreamEvent,
} from "../protocol/StreamEvent.ts";

/** A ping as Anthropic sends it. All clients ignore it. */
export const noOp: NoOp = () => ({ event: "ping", data: { type: "ping" } });

/** The error type that keeps clients from retrying. They retry `overloaded_error` four times. */
const type = "invalid_request_error";

const errorData = (message: string) => ({ type: "error", error: { type, message } });

/** The body of an error response. */
export const document: GivenUpForm["document"] = (message, code) => ({
  type: "error",
  error: { type: documentType, message, ...recoveryCodeField(code) },
});

/** Ends a stream with an error after a start, because opencode retries if the error is the first event. */
export const ending: GivenUpForm["ending"] = (message, last, run) =>
  endingOf(...(last === undefined ? [messageStart(run)] : []), { event: "error", data: errorData(message) });

const messageStart = ({ id, model }: Parameters<NoOp>[1]): StreamEvent => ({
  event: "message_start",
  data: {
    type: "message_start",
    message: {
      id,
      type: "message",
      role: "assistant",
      model: model ?? "",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    },
  },
});
