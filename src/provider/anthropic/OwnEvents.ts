/**
 * Writes the events of our own that clients of Messages take: a ping, and an error.
 *
 * Never an event that Messages does not have: the AI SDK's provider ends with an error at one before `message_start`. Measured
 * on 2026-11-22 with claude-code, opencode, copilot, pi and three SDKs.
 */
import {
  documentType,
  endingOf,
  type GivenUpForm,
  type NoOp,
  type StreamEvent,
  told,
} from "../protocol/StreamEvent.ts";

/** A ping as Anthropic sends it: all clients swallow it. */
export const noOp: NoOp = () => ({ event: "ping", data: { type: "ping" } });

/** The type is what tells clients that asking again is of no use: `overloaded_error` is asked again four times. */
const type = "invalid_request_error";

const failed = (message: string) => ({ type: "error", error: { type, message } });

/** An error response of Messages. */
export const document: GivenUpForm["document"] = (message, code) => ({
  type: "error",
  error: { type: documentType, message, ...told(code) },
});

/** An error behind a start: opencode asks again where the error is the first event. */
export const ending: GivenUpForm["ending"] = (message, last, run) =>
  endingOf(...(last === undefined ? [started(run)] : []), { event: "error", data: failed(message) });

const started = ({ id, model }: Parameters<NoOp>[1]): StreamEvent => ({
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
