/**
 * Builds the parts of a request that continues shown text: the instructions to the model, the fields that mark the last message as one to
 * continue, and the remaining token budget.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { estimateTokens } from "../../domain/Prices.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "./Input.ts";
import { closingWords } from "./Words.ts";

/**
 * Returns the instruction to repeat the anchor and continue from there.
 *
 * @param quote the end of the shown text
 */
export const seamWords = (quote: string): string => {
  const mark = markFor(quote);
  return `Your last message was cut off by a connection failure. It ended, between the marks, with: <${mark}>${quote}</${mark}>. Begin your next message with exactly these characters, without the marks, quotation or any word before them, also where a word or a line is cut, and go straight on to the end of the answer. Repeat nothing else and do not mention the interruption.`;
};

/** Returns a tag name whose closing tag does not occur in the quote. */
const markFor = (quote: string): string => {
  let mark = "cut";
  for (let number = 2; quote.includes(`</${mark}>`); number += 1) mark = `cut${number}`;
  return mark;
};

/** Properties of the kept response, determined by its builder. */
export interface Kept {
  /** True if the kept response has text or blocks, and no call whose result begins the next turn. */
  readonly spoken: boolean;
  readonly lostHosted: boolean;
  readonly textOf: (item: KeptItem) => string;
}

/** Returns the user message after the kept response; undefined if there is nothing to say, or if the request ends with the response. */
export const closingMessage = (
  prepared: Prepared,
  kept: Kept,
): Result.Result<string | undefined, ContinuationError> => {
  const { items, seam, whole } = prepared;
  if (seam === undefined) return Result.succeed(closingWords(items, { ...kept, whole }));
  const wrong = findMisfit(prepared, kept);
  if (wrong !== undefined) return refusal("seam", "seam", wrong);
  return Result.succeed(seam.proof === "anchor" ? seamWords(seam.quote) : undefined);
};

/**
 * Returns the reason why the kept items do not match the plan, so that the continuation would not follow the shown text. Ignores `whole`:
 * some servers send a finish with every piece, so only the run knows if the response was complete.
 */
const findMisfit = ({ items, seam }: Prepared, { lostHosted, spoken, textOf }: Kept): string | undefined => {
  const said = items.filter(({ type }) => type !== "note" && type !== "reasoning");
  if (lostHosted || !spoken || said.some(({ type }) => type === "call"))
    return "a call is open in addition to the text";
  if (said.at(-1)?.type !== "text") return "the response does not end with text";
  const text = said.map((item) => (item.type === "text" ? textOf(item) : "")).join("");
  return trimUnsendable(text).endsWith(trimUnsendable(seam?.quote ?? ""))
    ? undefined
    : "the kept text does not end with the quote";
};

/** Removes an ending that no request can carry: white space or half a surrogate pair. */
const trimUnsendable = (text: string): string => {
  let end = text.length;
  while (end > 0 && (isHalf(text.charCodeAt(end - 1)) || text.slice(end - 1, end).trim() === "")) end -= 1;
  return text.slice(0, end);
};

/** Removes the first half of a surrogate pair at the end of a string, because servers reject it in JSON. */
export const withoutHalf = (text: string): string =>
  isHalf(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;

const isHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/**
 * Sets the fields that hold a token budget to the budget for the rest of the response. Drops `min_tokens`, because part of that minimum was
 * already shown and the minimum must not exceed the budget.
 */
export const withTokenBudget = (
  request: Json.JsonRecord,
  seam: SeamPlan | undefined,
  names: ReadonlyArray<string>,
  thinking: unknown,
): Json.JsonRecord => {
  if (seam === undefined) return request;
  const quoted = seam.proof === "anchor" ? seam.quote.length : 0;
  const { min_tokens: _least, ...rest } = request;
  return withRest(rest, names, { shown: seam.at, quoted }, thinking);
};

/**
 * Marks the last message as one to continue, in the form of the OpenAI family and its imitators. Removes the mark if the last message is
 * the user's, because the server would continue the user's message.
 *
 * @param list the field of the messages
 */
export const markFinalMessage = (
  request: Json.JsonRecord,
  seam: SeamPlan | undefined,
  list: string,
): Json.JsonRecord => {
  const messages = Json.list(request[list]);
  const last = Json.record(messages.at(-1));
  switch (seam?.form) {
    case "prefix":
    case "partial":
      return { ...request, [list]: messages.with(-1, { ...last, [seam.form]: true }) };
    case "continue_final_message":
      return { ...request, continue_final_message: true, add_generation_prompt: false };
  }
  if (request.continue_final_message !== true || last?.role === "assistant") return request;
  const { add_generation_prompt: _generation, continue_final_message: _final, ...rest } = request;
  return rest;
};

/**
 * Minimum token budget for the rest of a response, unless the request asked for less. The budget is an estimate, and a low estimate must
 * not cut the rest immediately.
 */
export const restTokensMin = 256;

/** Sizes that determine the token budget for the rest of a response. */
export interface Rest {
  /** Length of the shown text of the response, in UTF-16 code units. */
  readonly shown: number;
  /** Length of the shown text that the rest repeats, in UTF-16 code units. */
  readonly quoted: number;
}

/**
 * Returns the token budget for the rest of a response. The model thinks again, so thinking keeps its full budget, which stays below the
 * total as providers require.
 *
 * @param asked the requested budget; returned unchanged if it is not a count
 * @param thinking the part reserved for thinking, if the request sets one
 */
export const restOf = (asked: unknown, { quoted, shown }: Rest, thinking?: unknown): unknown => {
  const whole = Json.natural(asked);
  if (whole === undefined) return asked;
  const thought = Math.min(whole, Json.natural(thinking) ?? 0);
  const least = thought + Math.min(restTokensMin, whole - thought);
  return Math.min(whole, Math.max(least, whole - estimateTokens(shown) + estimateTokens(quoted)));
};

/**
 * Replaces the budget in some fields of a request by the budget for the rest of the response.
 *
 * @param names the fields that may hold the budget; missing ones are not added
 */
export const withRest = (
  request: Json.JsonRecord,
  names: ReadonlyArray<string>,
  rest: Rest,
  thinking?: unknown,
): Json.JsonRecord => {
  const changed = names.flatMap((name) =>
    request[name] === undefined ? [] : [[name, restOf(request[name], rest, thinking)] as const],
  );
  return changed.length === 0 ? request : { ...request, ...Object.fromEntries(changed) };
};
