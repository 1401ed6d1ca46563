/**
 * Adds what a user says next to a request of any of the four protocols, behind an answer that `Continuation.build` wrote.
 */
import * as Json from "../../domain/Json.ts";
import type { ProtocolId } from "../stream/Protocol.ts";
import { carryOn, goOn } from "./Words.ts";

/** Where a protocol keeps its messages, and how it writes text in them. */
const forms = {
  "openai-chat": { list: "messages", content: "content", part: (text: string): unknown => ({ type: "text", text }) },
  "openai-responses": {
    list: "input",
    content: "content",
    part: (text: string): unknown => ({ type: "input_text", text }),
  },
  "anthropic-messages": {
    list: "messages",
    content: "content",
    part: (text: string): unknown => ({ type: "text", text }),
  },
  "google-gemini": { list: "contents", content: "parts", part: (text: string): unknown => ({ text }) },
} as const;

/** Protocols whose messages may be a bare text. */
const bare: ReadonlySet<ProtocolId> = new Set(["openai-chat", "openai-responses"]);

/** The words with which `Continuation.build` ends a request, so that the user's own take their place. */
const asked = [goOn, carryOn];

/**
 * Adds what the user says. The words by which the last answer was to be gone on with give way to it, and a message of the
 * user's that stands last becomes one with it: some servers refuse two in a row.
 *
 * @param protocol the protocol of the body
 * @param body the request so far, as parsed JSON; it is not changed
 * @param text what the user says
 */
export const userTurn = (protocol: ProtocolId, body: Json.JsonRecord, text: string): Json.JsonRecord => {
  const form = forms[protocol];
  const inner = protocol === "google-gemini" && body.contents === undefined ? Json.record(body.request) : undefined;
  // Code Assist holds the request one level deeper.
  if (inner !== undefined) return { ...body, request: userTurn(protocol, inner, text) };
  const list = body[form.list];
  const messages: ReadonlyArray<unknown> =
    typeof list === "string" ? [{ type: "message", role: "user", content: list }] : Json.list(list);
  const last = Json.record(messages.at(-1));
  const own = last !== undefined && (last.role ?? "user") === "user" && last[form.content] !== undefined;
  if (last === undefined || !own) {
    const content = bare.has(protocol) ? text : [form.part(text)];
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
