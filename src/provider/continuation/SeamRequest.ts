/**
 * Goes on behind text that was shown: what the request says for it, where it ends with that text, and what is left of its budget.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "./Input.ts";
import { withRest } from "./TokenBudget.ts";
import { closingWords } from "./Words.ts";

/**
 * Asks for the anchor and what comes behind it.
 *
 * @param quote the end of what was shown
 */
export const seamWords = (quote: string): string => {
  const mark = markFor(quote);
  return `Your last message was cut off by a connection failure. It ended, between the marks, with: <${mark}>${quote}</${mark}>. Begin your next message with exactly these characters, without the marks, quotation or any word before them, also where a word or a line is cut, and go straight on to the end of the answer. Repeat nothing else and do not mention the interruption.`;
};

/** A mark that the quote itself does not close. */
const markFor = (quote: string): string => {
  let mark = "cut";
  for (let number = 2; quote.includes(`</${mark}>`); number += 1) mark = `cut${number}`;
  return mark;
};

/** What a builder has made of a response. */
export interface Kept {
  /** It has text or blocks, and no call whose result asks for the next turn. */
  readonly spoken: boolean;
  /** A provider's call was dropped. */
  readonly lostHosted: boolean;
  /** The text of an item that is one. */
  readonly textOf: (item: KeptItem) => string;
}

/**
 * What the user says behind the kept response; undefined where there is nothing to say, or the request ends with the response.
 */
export const wordsBehind = (prepared: Prepared, kept: Kept): Result.Result<string | undefined, ContinuationError> => {
  const { items, seam, whole } = prepared;
  if (seam === undefined) return Result.succeed(closingWords(items, { ...kept, whole }));
  const wrong = misfit(prepared, kept);
  if (wrong !== undefined) return refusal("seam", "seam", wrong);
  return Result.succeed(seam.proof === "anchor" ? seamWords(seam.quote) : undefined);
};

/**
 * Why what was kept does not go on by a plan: what is joined would not stand behind what the model reads. Whether the response came
 * whole only its run knows: some servers send a finish with every piece, of which the last one counts.
 */
const misfit = ({ items, seam }: Prepared, { lostHosted, spoken, textOf }: Kept): string | undefined => {
  const said = items.filter(({ type }) => type !== "note" && type !== "reasoning");
  if (lostHosted || !spoken || said.some(({ type }) => type === "call")) return "a call stands open beside the text";
  if (said.at(-1)?.type !== "text") return "the response does not end with text";
  const text = said.map((item) => (item.type === "text" ? textOf(item) : "")).join("");
  return bare(text).endsWith(bare(seam?.quote ?? ""))
    ? undefined
    : "the text that was kept does not end with the quote";
};

/** A text without what no request can hold at its end: white space, and half a character. */
const bare = (text: string): string => {
  let end = text.length;
  while (end > 0 && (isHalf(text.charCodeAt(end - 1)) || text.slice(end - 1, end).trim() === "")) end -= 1;
  return text.slice(0, end);
};

/** A text without the first half of a surrogate pair at its end: servers refuse such JSON. */
export const withoutHalf = (text: string): string =>
  isHalf(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;

/** Whether a code unit is the first half of a surrogate pair. */
const isHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/**
 * The budget of the rest, in those of the fields that hold one. What servers demand at least (`min_tokens`) has been shown in part,
 * and may not be more than the budget.
 */
export const budgeted = (
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
 * Says in the words of the OpenAI family and its imitators whether the last message is to be gone on with. A request whose last
 * message is the user's must not say so: its server would go on with that.
 *
 * @param list the field of the messages
 */
export const finalMessage = (request: Json.JsonRecord, seam: SeamPlan | undefined, list: string): Json.JsonRecord => {
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
