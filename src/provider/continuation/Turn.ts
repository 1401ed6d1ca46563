/**
 * Adds the user's next message to a request of any protocol, after a response that `Continuation.build` wrote.
 */
import * as Json from "../../domain/Json.ts";
import { carryOn, goOn } from "./Words.ts";

/** The field that lists the messages of a protocol's requests, and the form of a text in it. */
export interface TurnForm {
  /** The field of the body that lists the messages. */
  readonly list: string;
  /** The field of a message that holds its content. */
  readonly content: string;
  /** True if the content of a message may be a bare string. */
  readonly bare: boolean;
  /** The fields that mark a message as the user's. If omitted, its role. */
  readonly sender?: Json.JsonRecord;
  /** The field that holds the whole request, if a server wraps it. */
  readonly wrapper?: string;
  readonly part: (text: string) => unknown;
}

/** The sentences with which `Continuation.build` ends a request, until the user's own message replaces them. */
const asked = [goOn, carryOn];

/**
 * Adds the user's message, in place of the message that asks for a continuation. The text is merged with a trailing user message, because
 * some servers refuse two in a row.
 *
 * @param form the form of the body's protocol
 * @param body the request so far, as parsed JSON; it is not changed
 * @param text the user's message
 */
export const userTurn = (form: TurnForm, body: Json.JsonRecord, text: string): Json.JsonRecord => {
  const { wrapper } = form;
  const inner = wrapper !== undefined && body[form.list] === undefined ? Json.record(body[wrapper]) : undefined;
  if (wrapper !== undefined && inner !== undefined) return { ...body, [wrapper]: userTurn(form, inner, text) };
  const list = body[form.list];
  const messages: ReadonlyArray<unknown> = typeof list === "string" ? [messageOf(form, list)] : Json.list(list);
  const last = Json.record(messages.at(-1));
  const isUsers =
    form.sender === undefined
      ? (last?.role ?? "user") === "user"
      : Object.entries(form.sender).every(([name, value]) => last?.[name] === value);
  if (last === undefined || !isUsers || last[form.content] === undefined) {
    const content = form.bare ? text : [form.part(text)];
    return { ...body, [form.list]: [...messages, { ...(form.sender ?? { role: "user" }), [form.content]: content }] };
  }
  const content = appendText(last[form.content], text, form.part);
  return { ...body, [form.list]: messages.with(-1, { ...last, [form.content]: content }) };
};

/** Converts a text into a message of the user. Gives the message of a conversation that consists of one string. */
const messageOf = ({ bare, content, part, sender }: TurnForm, text: string): Json.JsonRecord =>
  sender === undefined
    ? { type: "message", role: "user", content: text }
    : { ...sender, [content]: bare ? text : [part(text)] };

const appendText = (before: unknown, text: string, part: (text: string) => unknown): unknown => {
  if (typeof before === "string")
    return [textBeforeAsking(before)?.trim() ?? before, text].filter((it) => it !== "").join("\n\n");
  const parts = Json.list(before);
  const open = Json.record(parts.at(-1));
  const kept = textBeforeAsking(Json.string(open?.text));
  if (open === undefined || kept === undefined) return [...parts, part(text)];
  const words = [kept.trim(), text].filter((it) => it !== "").join("\n\n");
  return parts.with(-1, { ...open, text: words });
};

/** Returns the text before the sentence that asks for a continuation; undefined if the text does not end with that sentence. */
const textBeforeAsking = (text: string): string | undefined => {
  const words = asked.find((it) => text.endsWith(it));
  return words === undefined ? undefined : text.slice(0, -words.length);
};
