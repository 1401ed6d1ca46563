/**
 * Decides which requests of OpenAI Chat Completions rule out continuing their response.
 *
 * `prediction` is allowed, because it makes tokens faster but not different. `web_search_options` is allowed, because a model that searches
 * does so again before it continues, and the splice writes the annotations of its sources. Frequency and presence penalties are allowed,
 * although they may keep a model from repeating the anchor. The seam is then unproven.
 */
import type * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  ["structured_output", (body) => Refusals.isStructured(body.response_format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ best_of, n }) => Refusals.isSeveral(n) || Refusals.isSeveral(best_of)],
  ["logprobs", ({ logprobs, top_logprobs }) => Refusals.isSet(logprobs) || Refusals.isCount(top_logprobs)],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.isSet(audio)],
  ["server_state", ({ store }) => store === true],
  [
    "forced_tool",
    ({ function_call, tool_choice }) => Refusals.isCallDemanded(tool_choice) || isFunctionDemanded(function_call),
  ],
];

/** True if the legacy `function_call` is an object, which names the function to call. */
const isFunctionDemanded = (choice: unknown): boolean => typeof choice === "object" && choice !== null;

/** The reason why the response to a request cannot be continued; undefined if the request allows it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
