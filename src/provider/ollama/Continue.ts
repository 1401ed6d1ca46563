/**
 * Builds the next request of Ollama's `/api/chat` from a broken response.
 *
 * The response becomes one assistant message, and a `tool` message follows for each of its calls. Thinking is sent back with calls only, as
 * in Ollama's own examples of an agent loop (docs.ollama.com/capabilities/thinking). `/api/generate` has no messages, so its responses are
 * never continued.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, isSaid, textOf } from "../continuation/Words.ts";

/** The field that lists the messages of a request, and the form of a text in it. */
export const turn: TurnForm = { list: "messages", content: "content", bare: true, part: (text) => text };

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, whole } = prepared;
    if (!Array.isArray(body.messages)) return yield* refusal("invalid", "messages", "expected a list");
    const text = fieldIn(items, "text", "text");
    const calls = items.flatMap(({ closing, json }) => (closing === undefined ? [] : [{ closing, json }]));
    const spoken = isSaid(text) && calls.length === 0;
    yield* freeText(spoken && !whole, body.format === undefined ? undefined : "format");
    const words = yield* closingMessage(prepared, {
      spoken,
      lostHosted: false,
      textOf: ({ json }) => Json.string(json.text),
    });
    const answer = { role: "assistant", content: text, ...callFields(items, calls) };
    const said = isSaid(text) || calls.length > 0;
    const results = calls.map(({ closing, json }) => ({
      ...{ role: "tool", content: textOf(closing.output), tool_name: json.name },
      ...(json.id === undefined ? {} : { tool_call_id: json.id }),
    }));
    const told = words === undefined ? [] : [{ role: "user", content: words }];
    const messages: ReadonlyArray<unknown> = body.messages;
    return { ...body, messages: [...(said ? withAnswer(messages, answer) : messages), ...results, ...told] };
  });

type Called = Pick<KeptItem, "json">;

const callFields = (items: ReadonlyArray<KeptItem>, calls: ReadonlyArray<Called>): Json.JsonRecord => {
  if (calls.length === 0) return {};
  const thinking = fieldIn(items, "reasoning", "thinking");
  const tool_calls = calls.map(({ json }) => ({
    ...(json.id === undefined ? {} : { id: json.id }),
    function: { name: json.name, arguments: Json.parse(Json.string(json.input))?.json ?? {} },
  }));
  return { ...(thinking === "" ? {} : { thinking }), tool_calls };
};

const fieldIn = (items: ReadonlyArray<KeptItem>, type: KeptItem["type"], field: string): string =>
  items.map((item) => (item.type === type ? Json.string(item.json[field]) : "")).join("");

/** Merges the answer into a trailing assistant message of the caller, because the response continued that message. */
const withAnswer = (messages: ReadonlyArray<unknown>, answer: Json.JsonRecord): ReadonlyArray<unknown> => {
  const last = Json.record(messages.at(-1));
  if (last?.role !== "assistant" || last.tool_calls !== undefined) return [...messages, answer];
  return messages.with(-1, { ...last, ...answer, content: Json.string(last.content) + Json.string(answer.content) });
};
