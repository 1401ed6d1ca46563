/**
 * Decides which requests of OpenAI Responses rule out continuing their response.
 *
 * A provider discards a response only if the request says `store: false`. Otherwise a second response would be stored in addition to the
 * first, under an id that the client never received. `prompt` is allowed, because a template precedes the input.
 */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "server_state",
    ({ background, conversation, previous_response_id, store }) =>
      store !== false || [background, conversation, previous_response_id].some(Refusals.isSet),
  ],
  ["structured_output", (body) => Refusals.isStructured(Json.record(body.text)?.format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ n }) => Refusals.isSeveral(n)],
  [
    "logprobs",
    ({ include, top_logprobs }) =>
      Refusals.isCount(top_logprobs) || Json.list(include).some((it) => Json.string(it).endsWith(".logprobs")),
  ],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.isSet(audio)],
  ["forced_tool", ({ tool_choice }) => Refusals.isCallDemanded(tool_choice)],
];

/** The reason why the response to a request cannot be continued; undefined if the request allows it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
