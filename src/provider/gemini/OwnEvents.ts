/**
 * Writes this package's own events for clients of Gemini: an empty part, and an error in the two forms that they read.
 *
 * It never writes a comment, because gemini-cli then misreads the stream. It never writes a `finishReason`, because gemini-cli takes that
 * for a complete response. Measured on 2026-11-22 with gemini-cli and three SDKs.
 */
import { encodeEvent, endingPauseMs, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";

/** A part with empty text. */
export const noOp: NoOp = () => ({
  data: { candidates: [{ content: { parts: [{ text: "" }], role: "model" }, index: 0 }] },
});

/** The status that keeps clients from retrying. */
const status = "FAILED_PRECONDITION";

/** The body of an error response. */
export const document: GivenUpForm["document"] = (message, code, httpStatus) => ({
  error: { code: httpStatus, message, status, ...recoveryCodeField(code) },
});

/** Pause after the bare line, in milliseconds: gemini-cli reads the line only if it arrives separately. */
const bareLinePauseMs = 100;

/** Ends a stream with a line of bare JSON in a separate write, for Google's SDK, and with the same JSON as data, for the AI SDK. */
export const ending: GivenUpForm["ending"] = (message) => {
  const data = { error: { code: 400, message, status } };
  return [
    { text: `\n\n${JSON.stringify(data)}\n`, pauseMs: bareLinePauseMs },
    { text: `\n${encodeEvent({ data })}`, pauseMs: endingPauseMs },
  ];
};
