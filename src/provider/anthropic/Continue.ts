/**
 * Builds the next request of Anthropic Messages from a broken response.
 *
 * The rules of the API that shape it: every `tool_use` has its `tool_result` in the next message, results first; thinking
 * goes back unchanged with its signature or not at all, and never as the last block; a hosted call goes back only with its
 * result; blank text blocks and assistant messages at the end are refused.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { budgeted, withoutHalf, wordsBehind } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, idMaker, isSaid } from "../continuation/Words.ts";

/** Where a message stands, and how it writes text. */
export const turn: TurnForm = {
  list: "messages",
  content: "content",
  bare: false,
  part: (text) => ({ type: "text", text }),
};

/** Builds the body. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, seam, whole } = prepared;
    if (!Array.isArray(body.messages)) return yield* refusal("invalid", "messages", "expected a list");
    const messages: ReadonlyArray<unknown> = body.messages;
    const { assistant, lostHosted, results } = blocksOf(items, messages);
    const spoken = assistant.length > 0 && results.length === 0;
    yield* freeText(!whole && spoken && assistant.some((block) => block.type === "text"), structured(body));
    const words = yield* wordsBehind(prepared, { spoken, lostHosted, textOf });
    const user = [...results, ...(words === undefined ? [] : [{ type: "text", text: words }])];
    const blocks = seam === undefined ? assistant : shownIn(assistant, seam.proof === "prefill");
    const answered = blocks.length === 0 ? messages : withBlocks(messages, "assistant", blocks);
    const next = { ...body, messages: user.length === 0 ? answered : withBlocks(answered, "user", user) };
    return budgeted(next, seam, ["max_tokens"], Json.record(body.thinking)?.budget_tokens);
  });

const textOf = ({ json }: KeptItem): string => Json.string(json.text);

/**
 * The blocks of a response that goes on in its text. The API refuses white space at the end of a request, where that is the
 * assistant's.
 */
const shownIn = (blocks: ReadonlyArray<Json.JsonRecord>, isLast: boolean): ReadonlyArray<Json.JsonRecord> =>
  blocks.map((block, at) => {
    if (at < blocks.length - 1 || block.type !== "text") return block;
    const text = withoutHalf(Json.string(block.text));
    return { ...block, text: isLast ? text.trimEnd() : text };
  });

interface Blocks {
  readonly assistant: ReadonlyArray<Json.JsonRecord>;
  readonly results: ReadonlyArray<Json.JsonRecord>;
  readonly lostHosted: boolean;
}

const blocksOf = (items: ReadonlyArray<KeptItem>, messages: ReadonlyArray<unknown>): Blocks => {
  const asked = idsOf(messages.slice(-1));
  const paired = (id: unknown, type: KeptItem["type"]) =>
    items.some((it) => it.type === type && it.whole && id === (type === "result" ? it.json.tool_use_id : it.json.id));
  const idOf = idMaker(idsOf(messages));
  const assistant: Array<Json.JsonRecord> = [];
  const results: Array<Json.JsonRecord> = [];
  let lostHosted = false;
  for (const { closing, json, type, whole } of items) {
    if (type === "text" && isSaid(Json.string(json.text))) assistant.push({ type: "text", ...json });
    if (type === "reasoning" && whole && (json.signature || json.data)) assistant.push(json);
    if (type === "hosted") {
      if (whole && paired(json.id, "result")) assistant.push(hosted(json));
      else lostHosted = true;
    }
    // A turn that the provider had paused goes on with the result of a call of the message before.
    if (type === "result" && whole && (paired(json.tool_use_id, "hosted") || asked.has(Json.string(json.tool_use_id))))
      assistant.push(json);
    if (closing === undefined) continue;
    const id = idOf(Json.string(json.id));
    assistant.push({ ...json, type: "tool_use", id, name: Json.string(json.name), input: inputOf(json.input) });
    results.push({
      type: "tool_result",
      tool_use_id: id,
      content:
        typeof closing.output === "string" || isBlocks(closing.output)
          ? closing.output
          : JSON.stringify(closing.output),
      ...(closing.failed ? { is_error: true } : {}),
    });
  }
  while (isThinking(assistant.at(-1))) assistant.pop();
  return { assistant, results, lostHosted };
};

/** The input of a hosted call comes with its block, or as text behind it. */
const hosted = ({ input_text, ...block }: Json.JsonRecord): Json.JsonRecord => {
  const told = Json.parse(Json.string(input_text));
  return told === undefined ? block : { ...block, input: told.json };
};

/** The API takes objects only. */
const inputOf = (input: unknown): unknown => {
  const json = typeof input === "string" ? (Json.parse(input)?.json ?? {}) : input;
  return Json.record(json) ?? { input: json };
};

const isBlocks = (output: unknown): boolean =>
  Array.isArray(output) && output.every((block) => Json.string(Json.record(block)?.type) !== "");

const isThinking = (block: Json.JsonRecord | undefined): boolean =>
  block?.type === "thinking" || block?.type === "redacted_thinking";

/** Ids of the calls in messages. */
const idsOf = (messages: ReadonlyArray<unknown>): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) =>
      Json.list(Json.record(message)?.content).flatMap((block) => {
        const { id, type } = Json.record(block) ?? {};
        return Json.string(type).endsWith("tool_use") ? [Json.string(id)] : [];
      }),
    ),
  );

/** Adds blocks to the last message where it is of that role (a prefill of the caller's), else as a message of their own. */
const withBlocks = (
  messages: ReadonlyArray<unknown>,
  role: "assistant" | "user",
  blocks: ReadonlyArray<Json.JsonRecord>,
): ReadonlyArray<unknown> => {
  const last = Json.record(messages.at(-1));
  if (last?.role !== role) return [...messages, { role, content: blocks }];
  const before = typeof last.content === "string" ? [{ type: "text", text: last.content }] : Json.list(last.content);
  return messages.with(-1, { ...last, content: [...before, ...blocks] });
};

/** The field that wants the response as one JSON document. */
const structured = (body: Json.JsonRecord): string | undefined => {
  if (Json.record(Json.record(body.output_config)?.format) !== undefined) return "output_config.format";
  return Json.record(body.output_format) === undefined ? undefined : "output_format";
};
