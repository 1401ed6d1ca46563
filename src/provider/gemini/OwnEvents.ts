/**
 * Writes the events of our own that clients of Gemini take: an empty part, and an error in the two forms that they read.
 *
 * Never a comment, at which gemini-cli loses its place, nor a `finishReason`, which it takes for the whole. Measured on
 * 2026-11-22 with gemini-cli and three SDKs.
 */
import { endingPauseMs, type GivenUpForm, type NoOp, told, written } from "../protocol/StreamEvent.ts";

/** A part with no text in it. */
export const noOp: NoOp = () => ({
  data: { candidates: [{ content: { parts: [{ text: "" }], role: "model" }, index: 0 }] },
});

/** The status is what tells clients that asking again is of no use. */
const status = "FAILED_PRECONDITION";

/** An error response of Gemini. */
export const document: GivenUpForm["document"] = (message, code, httpStatus) => ({
  error: { code: httpStatus, message, status, ...told(code) },
});

/** gemini-cli reads the bare line if it comes alone, in milliseconds behind it. */
const bareLinePauseMs = 100;

/** A line of bare JSON in a write of its own, which Google's SDK reads, and the same as data, which the AI SDK reads. */
export const ending: GivenUpForm["ending"] = (message) => {
  const data = { error: { code: 400, message, status } };
  return [
    { text: `\n\n${JSON.stringify(data)}\n`, pauseMs: bareLinePauseMs },
    { text: `\n${written({ data })}`, pauseMs: endingPauseMs },
  ];
};
