/**
 * Builds the next request of Mistral's `/v1/conversations` from a broken response that the provider does not store.
 *
 * The response becomes the entries that the API itself returns: its message, its calls and the results of the calls.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, idMaker, isSaid, textOf } from "../continuation/Words.ts";

/** The field that lists the entries of a request, and the form of a text in it. */
export const turn: TurnForm = {
  list: "inputs",
  content: "content",
  bare: true,
  sender: { type: "message.input", role: "user" },
  part: (text) => ({ type: "text", text }),
};

const message = (content: string) => ({ type: "message.input", role: "user", content });

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, whole } = prepared;
    if (body.store !== false)
      return yield* refusal(
        "server_state",
        "store",
        "expected false, because a repeat appends to a stored conversation",
      );
    if (typeof body.inputs !== "string" && !Array.isArray(body.inputs))
      return yield* refusal("invalid", "inputs", "expected a text or a list");
    const inputs: ReadonlyArray<unknown> = typeof body.inputs === "string" ? [message(body.inputs)] : body.inputs;
    const text = items.map(({ json, type }) => (type === "text" ? Json.string(json.text) : "")).join("");
    const { called, results } = callsOf(items);
    const spoken = isSaid(text) && results.length === 0;
    const form = Json.record(Json.record(body.completion_args)?.response_format)?.type;
    const isJson = form === "json_object" || form === "json_schema";
    yield* freeText(spoken && !whole, isJson ? "completion_args.response_format" : undefined);
    const words = yield* closingMessage(prepared, {
      spoken,
      lostHosted: items.some(({ type }) => type === "hosted"),
      textOf: ({ json }) => Json.string(json.text),
    });
    const entries = [
      ...(isSaid(text) ? [{ type: "message.output", role: "assistant", content: text }] : []),
      ...called,
      ...results,
      ...(words === undefined ? [] : [message(words)]),
    ];
    return { ...body, inputs: [...inputs, ...entries] };
  });

interface Calls {
  readonly called: ReadonlyArray<object>;
  readonly results: ReadonlyArray<object>;
}

const callsOf = (items: ReadonlyArray<KeptItem>): Calls => {
  const ids = items.flatMap(({ json, type }) => (type === "note" ? [Json.string(json.id)] : []));
  const idOf = idMaker([]);
  const called: Array<object> = [];
  const results: Array<object> = [];
  for (const { closing, json } of items) {
    if (closing === undefined) continue;
    const own = Json.string(json.id);
    const tool_call_id = idOf(ids.find((long) => label(long) === own) ?? own);
    called.push({ type: "function.call", tool_call_id, name: json.name, arguments: Json.string(json.input) });
    results.push({ type: "function.result", tool_call_id, result: textOf(closing.output) });
  }
  return { called, results };
};
