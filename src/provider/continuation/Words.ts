/**
 * Holds what a builder adds in words, and when it must not.
 *
 * No request ends with an assistant message. Claude from Opus 4.6 on refuses such a prefill, so does every Claude that
 * thinks; Gemini, Responses and most chat servers read it as a finished turn. The few that would go on (older Claudes,
 * `prefix: true` at DeepSeek and Mistral) understand a user's message as well, so that there is one way for all.
 */
import * as Result from "effect/Result";
import type { ContinuationError, KeptItem } from "./Input.ts";
import { refusal } from "./Input.ts";

/** Asks for the rest of a text that was cut. */
export const goOn =
  "Your last message was cut off by a connection failure. Go on exactly where it stopped, without repeating anything and without a word about the interruption.";

/** Stands behind a response that came whole, until the user's next words take its place (`userTurn`). */
export const carryOn = "Go on.";

/** Tells of a call that was cut before it was whole: it was not run. */
export const cutCall =
  "A tool call that you had begun to write was lost and was not run. Call it again if it is still needed.";

/** Tells of a call that no words can close, and that was left out for it. */
export const lostCall =
  "A tool call of your last message is left out here because its result was lost; it may have taken effect or not. Check before you call it again.";

/** Tells of a provider's own tool that began and gave no result. */
export const cutHosted =
  "A tool that runs on the provider's side had been called when the connection failed; its result was lost, and it may have taken effect or not.";

/**
 * What the model reads behind the kept response: to go on where a text is open, and what was lost.
 *
 * @param spoken the kept response has text, and no call whose result asks for the next turn
 * @param lostHosted a provider's call was dropped
 * @param whole the response came to its end: nothing broke, and nothing is told of a failure
 * @returns undefined when there is nothing to say
 */
export const closingWords = (
  items: ReadonlyArray<KeptItem>,
  { lostHosted, spoken, whole }: { readonly spoken: boolean; readonly lostHosted: boolean; readonly whole: boolean },
): string | undefined => {
  if (whole) return spoken ? carryOn : undefined;
  const cut = spoken && items.some((item) => item.type === "call" && !item.whole);
  const words = [...(lostHosted ? [cutHosted] : []), ...(cut ? [cutCall] : []), ...(spoken ? [goOn] : [])];
  return words.length === 0 ? undefined : words.join(" ");
};

/**
 * Refuses to go on with a text that the request wants as one whole JSON document: the rest alone could never be one.
 *
 * @param field the field of the body that wants it; undefined when none does
 */
export const freeText = (spoken: boolean, field: string | undefined): Result.Result<void, ContinuationError> =>
  spoken && field !== undefined
    ? refusal("structured_output", field, "a cut answer cannot go on as a whole JSON document")
    : Result.void;

/** Whether a text says anything: providers refuse blank ones. */
export const isSaid = (text: string): boolean => text.trim() !== "";

/**
 * Makes ids for calls that have none of their own, or one that another call of the request has: nine letters and digits, the
 * one form that every provider takes (Mistral wants exactly that).
 *
 * @param taken the ids that the request uses already
 */
export const idMaker = (taken: Iterable<string>): ((id: string) => string) => {
  const used = new Set(taken);
  let next = 1;
  return (id) => {
    let own = id;
    while (own === "" || used.has(own)) own = `call${String(next++).padStart(5, "0")}`;
    used.add(own);
    return own;
  };
};

/** A result as text, for protocols that take no other. */
export const textOf = (output: unknown): string =>
  typeof output === "string" ? output : (JSON.stringify(output) ?? "");
