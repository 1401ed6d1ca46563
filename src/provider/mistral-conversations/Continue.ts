/**
 * Builds the next request of Mistral's `/v1/conversations` from a broken response that the provider does not store.
 *
 * The response becomes the entries that the API itself returns: its message, its calls and the results of the calls.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, isSaid, joinField, settledCalls, textOf } from "../continuation/Words.ts";

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
    const text = joinField(items, "text", "text");
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
  const called: Array<object> = [];
  const results: Array<object> = [];
  for (const { id, input, name, output } of settledCalls(items)) {
    called.push({ type: "function.call", tool_call_id: id, name, arguments: input });
    results.push({ type: "function.result", tool_call_id: id, result: textOf(output) });
  }
  return { called, results };
};
