/**
 * Builds the next request of Cohere's `/v2/chat` from a broken response.
 *
 * The response becomes one assistant message, and a `tool` message follows for each of its calls. The plan and the thoughts before calls
 * are sent back with them, as in Cohere's own examples of tool use, and never with text alone.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, isSaid, joinField, settledCalls, textOf } from "../continuation/Words.ts";

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
    const { body, items, whole } = prepared;
    if (!Array.isArray(body.messages)) return yield* refusal("invalid", "messages", "expected a list");
    const text = joinField(items, "text", "text");
    const { calls, results } = callsOf(items);
    const spoken = isSaid(text) && results.length === 0;
    const isJson = Json.record(body.response_format)?.type === "json_object";
    yield* freeText(spoken && !whole, isJson ? "response_format" : undefined);
    const words = yield* closingMessage(prepared, {
      spoken,
      lostHosted: false,
      textOf: ({ json }) => Json.string(json.text),
    });
    const content = contentOf(text, results.length > 0 ? joinField(items, "reasoning", "thinking") : "");
    const answer = { role: "assistant", ...(content === undefined ? {} : { content }), ...calls };
    const said = isSaid(text) || results.length > 0;
    const told = words === undefined ? [] : [{ role: "user", content: words }];
    return { ...body, messages: [...body.messages, ...(said ? [answer] : []), ...results, ...told] };
  });

const contentOf = (text: string, thinking: string): unknown => {
  if (thinking === "") return isSaid(text) ? text : undefined;
  return [{ type: "thinking", thinking }, ...(isSaid(text) ? [{ type: "text", text }] : [])];
};

interface Calls {
  /** Fields for the assistant message. */
  readonly calls: Json.JsonRecord;
  readonly results: ReadonlyArray<Json.JsonRecord>;
}

const callsOf = (items: ReadonlyArray<KeptItem>): Calls => {
  const calls: Array<Json.JsonRecord> = [];
  const results: Array<Json.JsonRecord> = [];
  for (const { id, input, name, output } of settledCalls(items)) {
    const called = { name, arguments: input };
    calls.push({ id, type: "function", function: called });
    results.push({ role: "tool", tool_call_id: id, content: textOf(output) });
  }
  if (calls.length === 0) return { calls: {}, results };
  const plan = joinField(items, "reasoning", "tool_plan");
  return { calls: { ...(plan === "" ? {} : { tool_plan: plan }), tool_calls: calls }, results };
};
