/**
 * Goes on with an answer as a model does that knows all of it: from the text that a request quotes, or behind the text that it ends
 * with. It shares no code with what makes such requests: it reads what a model would read.
 */
import * as Json from "../../domain/Json.ts";
import type { Item } from "./Items.ts";

/** What a request says of the text that it goes on with. */
export type GivenText =
  /** It stands between marks in the user's last words, and the answer is to begin with it. */
  | { readonly type: "quote"; readonly text: string }
  /** It is the assistant's last message, and the answer stands behind it. */
  | { readonly type: "prefill"; readonly text: string };

/**
 * The text that a request goes on with; undefined where it goes on with none.
 *
 * @param body the request, of any of the four protocols
 */
export const givenText = (body: unknown): GivenText | undefined => {
  const request = Json.record(body) ?? {};
  const turns = Json.list(request.messages ?? request.input ?? request.contents);
  const last = turns.at(-1);
  const { role } = Json.record(last) ?? {};
  const text = textsOf(last).join("");
  if (role === "assistant" || role === "model") return { type: "prefill", text };
  const quote = /<(cut\d*)>([\s\S]*)<\/\1>/.exec(text)?.[2];
  return quote === undefined ? undefined : { type: "quote", text: quote };
};

/** Every text of a turn, in order. */
const textsOf = (turn: unknown): ReadonlyArray<string> => {
  if (typeof turn === "string") return [turn];
  if (Array.isArray(turn)) return turn.flatMap(textsOf);
  const { content, parts, text } = Json.record(turn) ?? {};
  return textsOf(content ?? parts ?? text ?? []);
};

/** The rest of an answer, and which of its deltas are new: what is quoted was sent before. */
export interface Rest {
  readonly items: ReadonlyArray<Item>;
  readonly fresh: ReadonlySet<string>;
}

/**
 * The rest of an answer from the text that a request goes on with.
 *
 * @param items the whole answer
 * @param preface what the model says in front of it
 * @returns undefined where the answer does not have that text: a model cannot go on with what it never said
 */
export const restOf = (items: ReadonlyArray<Item>, given: GivenText, preface = ""): Rest | undefined => {
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
      // What the model thought, said or called in front of the text is not said again.
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
