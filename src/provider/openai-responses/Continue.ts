/**
 * Builds the next request of OpenAI Responses from a broken answer, out of input items.
 *
 * The broken response itself is never named: whether a response that failed was stored nobody says, and `previous_response_id`
 * stays what the request had. Reasoning goes back only encrypted and only with the whole item that it belongs to; the ids of
 * messages and calls stay out, because an id claims that the provider has the item and its reasoning stored.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingWords, freeText, idMaker, isSaid, lostCall } from "../continuation/Words.ts";
import { callItem, closingItem } from "./ContinueCalls.ts";

/** Builds the body. */
export const openAiResponses = ({ body, items, whole }: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    if (body.conversation !== undefined && body.conversation !== null)
      return yield* refusal("server_state", "conversation", "nobody knows which part of the answer it holds");
    const input = inputOf(body.input);
    if (input === undefined) return yield* refusal("invalid", "input", "expected a text or a list");
    const { answer, lost, outputs } = itemsOf(items, input);
    const spoken = answer.length > 0 && outputs.length === 0;
    yield* freeText(!whole && spoken && answer.some((item) => item.type === "message"), structured(body));
    const closing = closingWords(items, { spoken, lostHosted: lost.hosted, whole }) ?? "";
    const words = [...(lost.calls ? [lostCall] : []), closing].join(" ").trim();
    const told = words === "" ? [] : [{ type: "message", role: "user", content: words }];
    return { ...body, input: [...input, ...answer, ...outputs, ...told] };
  });

const inputOf = (input: unknown): ReadonlyArray<unknown> | undefined => {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return input === undefined || input === null ? [] : Array.isArray(input) ? input : undefined;
};

interface Items {
  readonly answer: ReadonlyArray<Json.JsonRecord>;
  readonly outputs: ReadonlyArray<Json.JsonRecord>;
  readonly lost: { readonly hosted: boolean; readonly calls: boolean };
}

const itemsOf = (items: ReadonlyArray<KeptItem>, input: ReadonlyArray<unknown>): Items => {
  const idOf = idMaker(input.map((item) => callIdOf(Json.record(item) ?? {})));
  const outputs: Array<Json.JsonRecord> = [];
  const lost = { hosted: false, calls: false };
  const sealed = items.every((item) => item.type !== "reasoning" || isSealed(item));
  const kept = items.map((item): Json.JsonRecord | undefined => {
    if (item.type === "text") return message(item);
    if (item.type === "reasoning") return isSealed(item) ? itemIn(item) : undefined;
    if (item.type === "hosted" || item.type === "result") {
      const settled = isSettled(item, items);
      if (!settled && item.type === "hosted") lost.hosted = true;
      return settled && sealed ? itemIn(item) : undefined;
    }
    if (item.closing === undefined) return undefined;
    const call = callItem(item.json, idOf(idIn(item)));
    const output = closingItem(call, item.closing);
    if (output === undefined) {
      lost.calls = true;
      return undefined;
    }
    outputs.push(output);
    return call;
  });
  const answer = kept.flatMap((item, at) => {
    if (item === undefined) return [];
    return items[at]?.type !== "reasoning" || leads(items, kept, at) ? [item] : [];
  });
  return { answer, outputs, lost };
};

/** Reasoning has to be followed by the whole item that came of it. */
const leads = (
  items: ReadonlyArray<KeptItem>,
  kept: ReadonlyArray<Json.JsonRecord | undefined>,
  at: number,
): boolean => {
  const next = items.findIndex((item, index) => index > at && item.type !== "reasoning");
  return next !== -1 && kept[next] !== undefined && items[next]?.whole === true;
};

const itemIn = ({ json }: KeptItem): Json.JsonRecord => Json.record(json.item) ?? {};

const isSealed = (item: KeptItem): boolean => item.whole && Json.string(itemIn(item).encrypted_content) !== "";

const idIn = (item: KeptItem): string => callIdOf(itemIn(item)) || Json.string(item.json.id);

const callIdOf = (item: Json.JsonRecord): string => Json.string(item.call_id);

/** A hosted call has its result in itself, or in an item of its own. */
const isSettled = (item: KeptItem, items: ReadonlyArray<KeptItem>): boolean => {
  const json = itemIn(item);
  const status = Json.string(json.status);
  if (!item.whole || (status !== "" && status !== "completed")) return false;
  const partner = (type: KeptItem["type"]) =>
    items.some((it) => it.type === type && it.whole && callIdOf(itemIn(it)) === callIdOf(json));
  if (item.type === "result") return partner("hosted");
  const apart = ["shell_call", "tool_search_call", "program"].includes(Json.string(json.type));
  return !apart || partner("result");
};

/** A message without its id; of one that was cut what came of its text. */
const message = (item: KeptItem): Json.JsonRecord | undefined => {
  const { id: _id, status: _status, ...native } = itemIn(item);
  const content = item.whole && native.content !== undefined ? Json.list(native.content) : streamed(item.json);
  const said = content.some((part) => {
    const { refusal, text } = Json.record(part) ?? {};
    return isSaid(Json.string(text) || Json.string(refusal));
  });
  return said ? { ...native, type: "message", role: "assistant", content } : undefined;
};

/** Texts stand under the type and index of their content part. */
const streamed = (json: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> =>
  Object.entries(json)
    .flatMap(([name, text]) => {
      const [, type, index] = /^(output_text|refusal) (\d+)$/.exec(name) ?? [];
      return type === undefined ? [] : [{ type, index: Number(index), text: Json.string(text) }];
    })
    .filter(({ text }) => text !== "")
    .toSorted((one, other) => one.index - other.index)
    .map(({ text, type }) => (type === "refusal" ? { type, refusal: text } : { type, text }));

const structured = (body: Json.JsonRecord): string | undefined => {
  const type = Json.string(Json.record(Json.record(body.text)?.format)?.type);
  return type.startsWith("json") ? "text.format" : undefined;
};
