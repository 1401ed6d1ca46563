/**
 * Builds the next Chat Completions request from a broken response, for OpenAI and the servers that imitate it.
 *
 * The response becomes one assistant message, and a `tool` message follows for each of its calls. Reasoning is sent back only together with
 * calls. DeepSeek, Moonshot and OpenRouter require reasoning with calls, and ignore or refuse it before text.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage, markFinalMessage, withoutHalf, withTokenBudget } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, idMaker, isSaid, textOf } from "../continuation/Words.ts";
import { messageText } from "./Content.ts";

/** The field that lists the messages of a request, and the form of a text in it. */
export const turn: TurnForm = {
  list: "messages",
  content: "content",
  bare: true,
  part: (text) => ({ type: "text", text }),
};

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, seam, whole } = prepared;
    if (!Array.isArray(body.messages)) return yield* refusal("invalid", "messages", "expected a list");
    if ((Json.natural(body.n) ?? 1) > 1) return yield* refusal("several_choices", "n", "expected one choice");
    const messages: ReadonlyArray<unknown> = body.messages;
    const text = seam === undefined ? textIn(items) : withoutHalf(textIn(items));
    const { calls, results } = callsOf(items, messages);
    const spoken = isSaid(text) && results.length === 0;
    yield* freeText(spoken && !whole, jsonFormatField(body));
    const words = yield* closingMessage(prepared, {
      spoken,
      lostHosted: false,
      textOf: ({ json }) => Json.string(json.text),
    });
    const said = isSaid(text) || results.length > 0;
    const answer = { role: "assistant", content: isSaid(text) ? text : null, ...calls };
    const answered = said ? withAnswer(messages, answer) : messages;
    const told = words === undefined ? [] : [{ role: "user", content: words }];
    const next = markFinalMessage({ ...body, messages: [...answered, ...results, ...told] }, seam, "messages");
    return withTokenBudget(next, seam, ["max_tokens", "max_completion_tokens"], thinkingBudget(body));
  });

/**
 * Returns the part of the token budget reserved for thinking, in the fields of OpenRouter and LiteLLM. Their servers count it as part of
 * the whole budget.
 */
const thinkingBudget = ({ reasoning, thinking }: Json.JsonRecord): unknown =>
  Json.record(reasoning)?.max_tokens ?? Json.record(thinking)?.budget_tokens;

/** Joins the text of all deltas. In older records, a response that came as one message without deltas is stored in a note. */
const textIn = (items: ReadonlyArray<KeptItem>): string => {
  const text = items.find((item) => item.type === "text");
  if (text !== undefined) return Json.string(text.json.text);
  const message = items.find((item) => item.type === "note" && item.json.message !== undefined);
  return messageText(Json.record(message?.json.message) ?? {});
};

interface Calls {
  /** Fields for the assistant message. */
  readonly calls: Json.JsonRecord;
  readonly results: ReadonlyArray<Json.JsonRecord>;
}

const callsOf = (items: ReadonlyArray<KeptItem>, messages: ReadonlyArray<unknown>): Calls => {
  const notes = items.filter((item) => item.type === "note").map((item) => item.json);
  const whole = items.flatMap(({ closing, json }) => (closing === undefined ? [] : [{ closing, json }]));
  const [first] = whole;
  if (first === undefined) return { calls: {}, results: [] };
  const reasoning = reasoningOf(items);
  if (notes.some((note) => note.legacy === true)) {
    const name = Json.string(first.json.name);
    return {
      calls: { ...reasoning, function_call: { name, arguments: Json.string(first.json.input) } },
      results: [{ role: "function", name, content: textOf(first.closing.output) }],
    };
  }
  // Servers that send id `0` for every call accept it back, so only empty and duplicate ids are replaced.
  const idOf = idMaker([]);
  const calls: Array<Json.JsonRecord> = [];
  const results: Array<Json.JsonRecord> = [];
  for (const { closing, json } of whole) {
    const note = notes.find((it) => it.id !== undefined && label(Json.string(it.id)) === json.id);
    const id = idOf(Json.string(note?.id ?? json.id));
    calls.push(callOf(id, json, note));
    results.push({ role: "tool", tool_call_id: id, ...nameOf(messages, json), content: contentOf(closing.output) });
  }
  return { calls: { ...reasoning, tool_calls: calls }, results };
};

const callOf = (id: string, json: Json.JsonRecord, note: Json.JsonRecord | undefined): Json.JsonRecord => {
  const name = Json.string(json.name);
  const input = Json.string(json.input);
  const extra = note?.extra_content === undefined ? {} : { extra_content: note.extra_content };
  return note?.custom === true
    ? { id, type: "custom", custom: { name, input }, ...extra }
    : { id, type: "function", function: { name, arguments: input }, ...extra };
};

/** Returns the tool's name if it is required next to the result. The request's own tool messages show if their server requires it. */
const nameOf = (messages: ReadonlyArray<unknown>, { name }: Json.JsonRecord): Json.JsonRecord => {
  const named = messages.some((message) => {
    const { name, role } = Json.record(message) ?? {};
    return role === "tool" && name !== undefined;
  });
  return named ? { name } : {};
};

/** Keeps a list of text parts and converts anything else to a string. */
const contentOf = (output: unknown): unknown =>
  Array.isArray(output) && output.length > 0 && output.every((part) => Json.record(part)?.type === "text")
    ? output
    : textOf(output);

const reasoningOf = (items: ReadonlyArray<KeptItem>): Json.JsonRecord => {
  const reasoning = items.filter((item) => item.type === "reasoning").map((item) => item.json);
  const text = Json.string(reasoning.find((json) => json.reasoning_content !== undefined)?.reasoning_content);
  const details = reasoning.filter((json) => json.reasoning_content === undefined);
  return {
    ...(text === "" ? {} : { reasoning_content: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
  };
};

/** Merges the answer into a trailing assistant message of the caller, because the response continued that message. */
const withAnswer = (messages: ReadonlyArray<unknown>, answer: Json.JsonRecord): ReadonlyArray<unknown> => {
  const last = Json.record(messages.at(-1));
  if (last?.role !== "assistant" || last.tool_calls !== undefined) return [...messages, answer];
  const { partial: _partial, prefix: _prefix, ...before } = last;
  const content = messageText(last) + Json.string(answer.content);
  return messages.with(-1, { ...before, ...answer, content: content === "" ? null : content });
};

const jsonFormatField = (body: Json.JsonRecord): string | undefined => {
  const type = Json.string(Json.record(body.response_format)?.type);
  return type.startsWith("json") ? "response_format" : undefined;
};
