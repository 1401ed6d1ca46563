/**
 * Continues an answer like a model that knows the whole answer: from the text that a request quotes, or after the text with which the
 * request ends. It reads the request as a model does, without the code that builds such requests.
 */
import * as Json from "../../domain/Json.ts";
import type { Item } from "./Items.ts";

/** The text that a continuation request carries, and its form. */
export type GivenText =
  /** Quoted between marks in the last user message. The answer should begin with this text. */
  | { readonly type: "quote"; readonly text: string }
  /** Sent as the last assistant message. The answer should continue after this text. */
  | { readonly type: "prefill"; readonly text: string };

/**
 * Finds the text that a request asks to continue; undefined if there is none.
 *
 * @param body a request of any protocol
 */
export const givenText = (body: unknown): GivenText | undefined => {
  const outer = Json.record(body) ?? {};
  // Code Assist wraps a request of Gemini.
  const request = Json.record(outer.request) ?? outer;
  const turns = Json.list(request.messages ?? request.input ?? request.contents);
  const last = turns.at(-1);
  const { role } = Json.record(last) ?? {};
  const text = textsOf(last).join("");
  if (role === "assistant" || role === "model") return { type: "prefill", text };
  const quote = /<(cut\d*)>([\s\S]*)<\/\1>/.exec(text)?.[2];
  return quote === undefined ? undefined : { type: "quote", text: quote };
};

const textsOf = (turn: unknown): ReadonlyArray<string> => {
  if (typeof turn === "string") return [turn];
  if (Array.isArray(turn)) return turn.flatMap(textsOf);
  const { content, parts, text } = Json.record(turn) ?? {};
  return textsOf(content ?? parts ?? text ?? []);
};

/** The rest of an answer. `fresh` contains only its new deltas, because the quoted deltas were sent before. */
export interface Rest {
  readonly items: ReadonlyArray<Item>;
  readonly fresh: ReadonlySet<string>;
}

/**
 * Returns the part of an answer that a continuation sends: from the quote on, or after the prefill.
 *
 * @param preface text that the model says first
 * @returns undefined if the answer does not contain the given text, because a model cannot continue what it never said
 */
export const computeRest = (items: ReadonlyArray<Item>, given: GivenText, preface = ""): Rest | undefined => {
  const whole = items.flatMap((item) => (item.type === "text" ? item.deltas : [])).join("");
  const found = given.type === "prefill" ? (whole.startsWith(given.text) ? 0 : -1) : whole.lastIndexOf(given.text);
  if (found === -1) return undefined;
  const shown = found + given.text.length;
  const from = given.type === "prefill" ? shown : found;
  const fresh = new Set<string>();
  const rest: Array<Item> = preface === "" ? [] : [{ type: "text", deltas: [preface] }];
  let at = 0;
  for (const item of items) {
    if (item.type !== "text") {
      // Reasoning and calls before the end of the given text are not repeated.
      if (at > shown || (at === shown && at > 0)) rest.push(item);
      continue;
    }
    const deltas: Array<string> = [];
    for (const delta of item.deltas) {
      const end = at + delta.length;
      if (end > from) deltas.push(delta.slice(Math.max(0, from - at)));
      if (at >= shown) fresh.add(delta);
      at = end;
    }
    if (deltas.length > 0) rest.push({ type: "text", deltas });
  }
  return { items: rest, fresh };
};
