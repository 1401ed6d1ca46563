/**
 * Builds the next request of Gemini's Interactions API from a broken response.
 *
 * The response becomes the steps that the API itself returns: its output, its calls and the results of the calls. The thoughts before calls
 * are sent back with them, because the API verifies their signatures, and never with text alone.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import { type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText, isSaid, joinField, settledCalls, textOf } from "../continuation/Words.ts";

const textContent = (text: string) => ({ type: "text", text });

/** The field that lists the steps of a request, and the form of a user's step in it. */
export const turn: TurnForm = {
  list: "input",
  content: "content",
  bare: false,
  sender: { type: "user_input" },
  part: textContent,
};

/** Builds the body of the next request. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, whole } = prepared;
    if (body.background === true || Json.string(body.previous_interaction_id) !== "")
      return yield* refusal("server_state", "input", "the earlier steps are stored at the provider");
    const input = yield* stepsOf(body.input);
    const text = joinField(items, "text", "text");
    const { called, results } = callsOf(items);
    const spoken = isSaid(text) && results.length === 0;
    yield* freeText(spoken && !whole, body.response_format === undefined ? undefined : "response_format");
    const words = yield* closingMessage(prepared, {
      spoken,
      lostHosted: items.some(({ type }) => type === "hosted"),
      textOf: ({ json }) => Json.string(json.text),
    });
    const steps = [
      ...(results.length > 0 ? items.flatMap(thoughtOf) : []),
      ...(isSaid(text) ? [{ type: "model_output", content: [textContent(text)] }] : []),
      ...called,
      ...results,
      ...(words === undefined ? [] : [{ type: "user_input", content: [textContent(words)] }]),
    ];
    return { ...body, input: [...input, ...steps] };
  });

/** Returns the input as steps. It may be a text, one content, a list of contents, or a list of steps. */
const stepsOf = (input: unknown): Result.Result<ReadonlyArray<unknown>, ContinuationError> => {
  if (typeof input === "string") return Result.succeed([{ type: "user_input", content: [textContent(input)] }]);
  const given: ReadonlyArray<unknown> = Array.isArray(input) ? input : [input];
  const types = given.map((it) => Json.string(Json.record(it)?.type));
  if (given.length === 0 || types.includes(""))
    return refusal("invalid", "input", "expected a text, contents or steps");
  return Result.succeed(types.every((type) => isContent.test(type)) ? [{ type: "user_input", content: given }] : given);
};

const isContent = /^(?:text|image|audio|video|document)$/;

const thoughtOf = ({ json, type }: KeptItem): ReadonlyArray<object> => {
  if (type !== "reasoning") return [];
  const summary = Json.string(json.summary);
  return [
    {
      type: "thought",
      ...(summary === "" ? {} : { summary: [textContent(summary)] }),
      ...(json.signature === undefined ? {} : { signature: json.signature }),
    },
  ];
};

interface Calls {
  readonly called: ReadonlyArray<object>;
  readonly results: ReadonlyArray<object>;
}

const callsOf = (items: ReadonlyArray<KeptItem>): Calls => {
  const called: Array<object> = [];
  const results: Array<object> = [];
  for (const { id, input, name, output } of settledCalls(items)) {
    called.push({ type: "function_call", id, name, arguments: Json.parse(input)?.json ?? {} });
    results.push({ type: "function_result", call_id: id, name, result: textOf(output) });
  }
  return { called, results };
};
