/**
 * Adds what a user says next to a request of any of the four protocols, behind a response that `Continuation.build` wrote.
 */
import * as Json from "../../domain/Json.ts";
import { carryOn, goOn } from "./Words.ts";

/** Where a protocol keeps its messages, and how it writes text in them. */
export interface TurnForm {
  /** The field of the body that lists the messages. */
  readonly list: string;
  /** The field of a message that holds what it says. */
  readonly content: string;
  /** A message may be a bare text. */
  readonly bare: boolean;
  /** The field that holds the whole request, where a server wraps it. */
  readonly wrapper?: string;
  /** Text as a part of a message. */
  readonly part: (text: string) => unknown;
}

/** The words with which `Continuation.build` ends a request, so that the user's own take their place. */
const asked = [goOn, carryOn];

/**
 * Adds what the user says. The words by which the last response was to be gone on with give way to it, and a message of the
 * user's that stands last becomes one with it: some servers refuse two in a row.
 *
 * @param form of the body's protocol
 * @param body the request so far, as parsed JSON; it is not changed
 * @param text what the user says
 */
export const userTurn = (form: TurnForm, body: Json.JsonRecord, text: string): Json.JsonRecord => {
  const { wrapper } = form;
  const inner = wrapper !== undefined && body[form.list] === undefined ? Json.record(body[wrapper]) : undefined;
  if (wrapper !== undefined && inner !== undefined) return { ...body, [wrapper]: userTurn(form, inner, text) };
  const list = body[form.list];
  const messages: ReadonlyArray<unknown> =
    typeof list === "string" ? [{ type: "message", role: "user", content: list }] : Json.list(list);
  const last = Json.record(messages.at(-1));
  const own = last !== undefined && (last.role ?? "user") === "user" && last[form.content] !== undefined;
  if (last === undefined || !own) {
    const content = form.bare ? text : [form.part(text)];
    return { ...body, [form.list]: [...messages, { role: "user", [form.content]: content }] };
  }
  const content = joined(last[form.content], text, form.part);
  return { ...body, [form.list]: messages.with(-1, { ...last, [form.content]: content }) };
};

const joined = (before: unknown, text: string, part: (text: string) => unknown): unknown => {
  if (typeof before === "string")
    return [asking(before)?.trim() ?? before, text].filter((it) => it !== "").join("\n\n");
  const parts = Json.list(before);
  const open = Json.record(parts.at(-1));
  const kept = asking(Json.string(open?.text));
  if (open === undefined || kept === undefined) return [...parts, part(text)];
  const words = [kept.trim(), text].filter((it) => it !== "").join("\n\n");
  return parts.with(-1, { ...open, text: words });
};

/** What stands before the words that ask to go on; undefined where a text does not end with them. */
const asking = (text: string): string | undefined => {
  const words = asked.find((it) => text.endsWith(it));
  return words === undefined ? undefined : text.slice(0, -words.length);
};
