/**
 * Builds the next request of Anthropic Messages from a broken response.
 *
 * The next message must begin with a `tool_result` for every `tool_use`. The API accepts thinking only unchanged, with its signature, and
 * never as the last block. It accepts a hosted call only with its result. It refuses blank text blocks, and assistant messages at the end.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage, withoutHalf, withTokenBudget } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, idMaker, isSaid } from "../continuation/Words.ts";

/** The field that lists the messages of a request, and the form of a text in it. */
export const turn: TurnForm = {
  list: "messages",
  content: "content",
  bare: false,
  part: (text) => ({ type: "text", text }),
};

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, seam, whole } = prepared;
    if (!Array.isArray(body.messages)) return yield* refusal("invalid", "messages", "expected a list");
    const messages: ReadonlyArray<unknown> = body.messages;
    const { assistant, lostHosted, results } = blocksOf(items, messages);
    const spoken = assistant.length > 0 && results.length === 0;
    yield* freeText(!whole && spoken && assistant.some((block) => block.type === "text"), jsonFormatField(body));
    const words = yield* closingMessage(prepared, { spoken, lostHosted, textOf });
    const user = [...results, ...(words === undefined ? [] : [{ type: "text", text: words }])];
    const blocks = seam === undefined ? assistant : trimLastBlock(assistant, seam.proof === "prefill");
    const answered = blocks.length === 0 ? messages : withBlocks(messages, "assistant", blocks);
    const next = { ...body, messages: user.length === 0 ? answered : withBlocks(answered, "user", user) };
    return withTokenBudget(next, seam, ["max_tokens"], Json.record(body.thinking)?.budget_tokens);
  });

const textOf = ({ json }: KeptItem): string => Json.string(json.text);

/**
 * Removes half a surrogate pair at the end of the last text. If the request ends with this text, removes white space too, because the API
 * refuses it there.
 */
const trimLastBlock = (blocks: ReadonlyArray<Json.JsonRecord>, isLast: boolean): ReadonlyArray<Json.JsonRecord> =>
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
  const isPaired = (id: unknown, type: KeptItem["type"]) =>
    items.some((it) => it.type === type && it.whole && id === (type === "result" ? it.json.tool_use_id : it.json.id));
  const idOf = idMaker(idsOf(messages));
  const assistant: Array<Json.JsonRecord> = [];
  const results: Array<Json.JsonRecord> = [];
  let lostHosted = false;
  for (const { closing, json, type, whole } of items) {
    if (type === "text" && isSaid(Json.string(json.text))) assistant.push({ type: "text", ...json });
    if (type === "reasoning" && whole && (json.signature || json.data)) assistant.push(json);
    if (type === "hosted") {
      if (whole && isPaired(json.id, "result")) assistant.push(addInput(json));
      else lostHosted = true;
    }
    // After a turn that the provider paused, the response may continue with the result of a call in the previous message.
    if (
      type === "result" &&
      whole &&
      (isPaired(json.tool_use_id, "hosted") || asked.has(Json.string(json.tool_use_id)))
    )
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

/** Adds the input of a hosted call, which arrived as text after its block. */
const addInput = ({ input_text, ...block }: Json.JsonRecord): Json.JsonRecord => {
  const told = Json.parse(Json.string(input_text));
  return told === undefined ? block : { ...block, input: told.json };
};

/** Returns the input as an object, because the API accepts only objects. */
const inputOf = (input: unknown): unknown => {
  const json = typeof input === "string" ? (Json.parse(input)?.json ?? {}) : input;
  return Json.record(json) ?? { input: json };
};

const isBlocks = (output: unknown): boolean =>
  Array.isArray(output) && output.every((block) => Json.string(Json.record(block)?.type) !== "");

const isThinking = (block: Json.JsonRecord | undefined): boolean =>
  block?.type === "thinking" || block?.type === "redacted_thinking";

const idsOf = (messages: ReadonlyArray<unknown>): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) =>
      Json.list(Json.record(message)?.content).flatMap((block) => {
        const { id, type } = Json.record(block) ?? {};
        return Json.string(type).endsWith("tool_use") ? [Json.string(id)] : [];
      }),
    ),
  );

/** Adds blocks to the last message if that message has the same role (a prefill by the caller), else as a new message. */
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

/** Returns the request field that asks for one JSON document. */
const jsonFormatField = (body: Json.JsonRecord): string | undefined => {
  if (Json.record(Json.record(body.output_config)?.format) !== undefined) return "output_config.format";
  return Json.record(body.output_format) === undefined ? undefined : "output_format";
};
