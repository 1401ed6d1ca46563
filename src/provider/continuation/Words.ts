/**
 * Contains the texts that a builder adds to a request, and refuses the cases in which it must not add any.
 *
 * Unless the `seam` plan is a prefill, no request ends with an assistant message. Claude from Opus 4.6 on, and every Claude that thinks,
 * refuse such an ending. Gemini, Responses and nearly all chat servers treat it as a finished turn. The few that would continue it (older
 * Claudes, `prefix: true` at DeepSeek and Mistral) also understand a user message, so all protocols use a user message.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { ContinuationError, KeptItem } from "./Input.ts";
import { refusal } from "./Input.ts";

/** Asks for the rest of a text that was interrupted. */
export const goOn =
  "Your last message was cut off by a connection failure. Go on exactly where it stopped, without repeating anything and without a word about the interruption.";

/** Follows a complete response, until the user's next message replaces it (`userTurn`). */
export const carryOn = "Go on.";

/** Reports a call that was interrupted before it was complete, and was not run. */
export const cutCall =
  "A tool call that you had begun to write was lost and was not run. Call it again if it is still needed.";

/** Reports a call that was omitted because text cannot replace its lost result. */
export const lostCall =
  "A tool call of your last message is left out here because its result was lost; it may have taken effect or not. Check before you call it again.";

/** Reports a provider's own tool that began and returned no result. */
export const cutHosted =
  "A tool that runs on the provider's side had been called when the connection failed; its result was lost, and it may have taken effect or not.";

/**
 * Returns the user message after the kept response: it names the lost parts and asks the model to continue unfinished text.
 *
 * @param spoken true if the kept response has text, and no call whose result starts the next turn
 * @param lostHosted true if a call that the provider runs was dropped
 * @param whole true if the response reached its end, so that no failure is mentioned
 * @returns undefined if there is nothing to say
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
 * Refuses to continue text that the request wants as one JSON document, because the rest alone is not a JSON document.
 *
 * @param field the request field that asks for such a document; undefined if none does
 */
export const freeText = (spoken: boolean, field: string | undefined): Result.Result<void, ContinuationError> =>
  spoken && field !== undefined
    ? refusal("structured_output", field, "a cut answer cannot continue as a whole JSON document")
    : Result.void;

/** True if the text is not blank. Providers refuse blank text. */
export const isSaid = (text: string): boolean => text.trim() !== "";

/**
 * Creates ids for calls that have none, or that share one with another call of the request. Each has nine letters and digits, because
 * Mistral requires exactly that and every other provider accepts it.
 *
 * @param taken the ids already in the request
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

/** A call of the broken response whose result goes into the next request. */
export interface SettledCall {
  readonly id: string;
  readonly name: unknown;
  /** Arguments as JSON. */
  readonly input: string;
  readonly output: unknown;
}

/** Returns the settled calls, each with an id of its own. The full id of a call comes from its note if the record shortened it. */
export const settledCalls = (items: ReadonlyArray<KeptItem>): ReadonlyArray<SettledCall> => {
  const ids = items.flatMap(({ json, type }) => (type === "note" ? [Json.string(json.id)] : []));
  const idOf = idMaker([]);
  return items.flatMap(({ closing, json }) => {
    if (closing === undefined) return [];
    const own = Json.string(json.id);
    const id = idOf(ids.find((long) => label(long) === own) ?? own);
    return [{ id, name: json.name, input: Json.string(json.input), output: closing.output }];
  });
};

/** Joins a field of all items of one type. */
export const joinField = (items: ReadonlyArray<KeptItem>, type: KeptItem["type"], field: string): string =>
  items.map((item) => (item.type === type ? Json.string(item.json[field]) : "")).join("");

/** Returns a tool result as text, for protocols that accept only text. */
export const textOf = (output: unknown): string =>
  typeof output === "string" ? output : (JSON.stringify(output) ?? "");
