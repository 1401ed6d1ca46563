/**
 * Says which requests of OpenAI Chat Completions have responses that cannot go on.
 *
 * `prediction` forbids nothing: it makes tokens faster and not other ones. Neither do `web_search_options`: a model that searches
 * does so again before it goes on, and what it says of its sources stands with the events that the splice writes. Penalties of
 * frequency and presence may keep a model from the anchor; then the seam is unproven, as with any other text.
 */
import type * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  ["structured_output", (body) => Refusals.isStructured(body.response_format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ best_of, n }) => Refusals.isSeveral(n) || Refusals.isSeveral(best_of)],
  ["logprobs", ({ logprobs, top_logprobs }) => Refusals.says(logprobs) || Refusals.isCount(top_logprobs)],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.says(audio)],
  ["server_state", ({ store }) => store === true],
  [
    "forced_tool",
    ({ function_call, tool_choice }) => Refusals.demandsCall(tool_choice) || demandsFunction(function_call),
  ],
];

/** The older spelling: a record names the function. */
const demandsFunction = (choice: unknown): boolean => typeof choice === "object" && choice !== null;

/** Why the response to a request cannot go on; undefined where nothing of the request forbids it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
