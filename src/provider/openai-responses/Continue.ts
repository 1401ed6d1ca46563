/**
 * Builds the next request of OpenAI Responses from a broken response, as input items.
 *
 * The request never names the broken response, because the provider may not have stored it. `previous_response_id` stays unchanged.
 * Reasoning is sent back only encrypted and only with the complete item that it belongs to. The ids of messages and calls are omitted,
 * because an id claims that the provider has stored the item and its reasoning.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type Closing, type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage, markFinalMessage, withoutHalf, withTokenBudget } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, idMaker, isSaid, lostCall, textOf } from "../continuation/Words.ts";

/** The field that lists the items of a request, and the form of a text in it. */
export const turn: TurnForm = {
  list: "input",
  content: "content",
  bare: true,
  part: (text) => ({ type: "input_text", text }),
};

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, seam, whole } = prepared;
    if (body.conversation !== undefined && body.conversation !== null)
      return yield* refusal("server_state", "conversation", "we do not know how much of the response is stored in it");
    const input = inputOf(body.input);
    if (input === undefined) return yield* refusal("invalid", "input", "expected a string or a list");
    const { answer, lost, outputs } = itemsOf(items, input);
    const spoken = answer.length > 0 && outputs.length === 0;
    yield* freeText(!whole && spoken && answer.some((item) => item.type === "message"), jsonFormatField(body));
    const closing = (yield* closingMessage(prepared, { spoken, lostHosted: lost.hosted, textOf: textIn })) ?? "";
    const words = [...(lost.calls ? [lostCall] : []), closing].join(" ").trim();
    const told = words === "" ? [] : [{ type: "message", role: "user", content: words }];
    const kept = seam === undefined ? answer : answer.map(withoutHalves);
    const next = markFinalMessage({ ...body, input: [...input, ...kept, ...outputs, ...told] }, seam, "input");
    return withTokenBudget(next, seam, ["max_output_tokens"], undefined);
  });

const textIn = (item: KeptItem): string =>
  Json.list(message(item)?.content)
    .map((part) => Json.string(Json.record(part)?.text))
    .join("");

const withoutHalves = (item: Json.JsonRecord): Json.JsonRecord =>
  item.type !== "message"
    ? item
    : {
        ...item,
        content: Json.list(item.content).map((part) => {
          const { text, ...rest } = Json.record(part) ?? {};
          return typeof text === "string" ? { ...rest, text: withoutHalf(text) } : part;
        }),
      };

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
    return items[at]?.type !== "reasoning" || isFollowed(items, kept, at) ? [item] : [];
  });
  return { answer, outputs, lost };
};

/** True if the complete item that the reasoning produced follows it, as the API requires. */
const isFollowed = (
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

/** True if a hosted call has its result, in its own item or in a separate one. */
const isSettled = (item: KeptItem, items: ReadonlyArray<KeptItem>): boolean => {
  const json = itemIn(item);
  const status = Json.string(json.status);
  if (!item.whole || (status !== "" && status !== "completed")) return false;
  const hasPartner = (type: KeptItem["type"]) =>
    items.some((it) => it.type === type && it.whole && callIdOf(itemIn(it)) === callIdOf(json));
  if (item.type === "result") return hasPartner("hosted");
  const apart = ["shell_call", "tool_search_call", "program"].includes(Json.string(json.type));
  return !apart || hasPartner("result");
};

/** Returns a message without its id. If the message was cut, it holds the text that arrived. */
const message = (item: KeptItem): Json.JsonRecord | undefined => {
  const { id: _id, status: _status, ...native } = itemIn(item);
  const content = item.whole && native.content !== undefined ? Json.list(native.content) : textPartsOf(item.json);
  const said = content.some((part) => {
    const { refusal, text } = Json.record(part) ?? {};
    return isSaid(Json.string(text) || Json.string(refusal));
  });
  return said ? { ...native, type: "message", role: "assistant", content } : undefined;
};

/** Returns the text parts of a message. Each text is stored under the type and index of its content part. */
const textPartsOf = (json: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> =>
  Object.entries(json)
    .flatMap(([name, text]) => {
      const [, type, index] = /^(output_text|refusal) (\d+)$/.exec(name) ?? [];
      return type === undefined ? [] : [{ type, index: Number(index), text: Json.string(text) }];
    })
    .filter(({ text }) => text !== "")
    .toSorted((one, other) => one.index - other.index)
    .map(({ text, type }) => (type === "refusal" ? { type, refusal: text } : { type, text }));

const jsonFormatField = (body: Json.JsonRecord): string | undefined => {
  const type = Json.string(Json.record(Json.record(body.text)?.format)?.type);
  return type.startsWith("json") ? "text.format" : undefined;
};

/**
 * Returns the call as an input item.
 *
 * @param json the call's item, if known, and its complete input
 * @param id the id that the call's output refers to
 */
const callItem = (json: Json.JsonRecord, id: string): Json.JsonRecord => {
  const { id: own, status: _status, ...native } = Json.record(json.item) ?? {};
  const type = Json.string(native.type) || "function_call";
  const name = Json.string(native.name) || Json.string(json.name);
  const input = Json.string(json.input);
  switch (type) {
    case "function_call":
      return { ...native, type, call_id: id, name, arguments: input };
    case "custom_tool_call":
      return { ...native, type, call_id: id, name, input };
    case "mcp_approval_request":
      return { ...native, type, id: own };
    default:
      return { ...native, type, call_id: id, status: "completed" };
  }
};

/**
 * Returns the item that closes a call.
 *
 * @returns undefined for a call that text cannot close (a computer call requires a picture), which is omitted
 */
const closingItem = (call: Json.JsonRecord, { failed, output }: Closing): Json.JsonRecord | undefined => {
  const { call_id, type } = call;
  const native = Json.record(output);
  // The runtime created a complete output item itself.
  if (native !== undefined && /_(output|response)$/.test(Json.string(native.type)))
    return type === "mcp_approval_request" ? native : { ...native, call_id };
  const text = textOf(output);
  switch (type) {
    case "function_call":
    case "custom_tool_call":
      return { type: `${type}_output`, call_id, output: isContent(output) ? output : text };
    case "local_shell_call":
      return { type: "local_shell_call_output", call_id, output: text };
    case "shell_call": {
      const outcome = { type: "exit", exit_code: failed ? 1 : 0 };
      return { type: "shell_call_output", call_id, output: [{ stdout: "", stderr: text, outcome }] };
    }
    case "apply_patch_call":
      return { type: "apply_patch_call_output", call_id, status: failed ? "failed" : "completed", output: text };
    case "mcp_approval_request":
      return { type: "mcp_approval_response", approval_request_id: call.id, approve: false, reason: text };
    default:
      return undefined;
  }
};

const isContent = (output: unknown): boolean =>
  Array.isArray(output) &&
  output.length > 0 &&
  output.every((part) => Json.string(Json.record(part)?.type).startsWith("input_"));
