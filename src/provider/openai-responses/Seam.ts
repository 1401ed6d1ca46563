/**
 * Says which requests of OpenAI Responses have responses that cannot go on.
 *
 * Only a request that says `store: false` has a response that its provider does not keep: of any other a second one would stand
 * beside the first, under an id that nobody has been told. `prompt` forbids nothing: a template stands in front of the input.
 */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "server_state",
    ({ background, conversation, previous_response_id, store }) =>
      store !== false || [background, conversation, previous_response_id].some(Refusals.says),
  ],
  ["structured_output", (body) => Refusals.isStructured(Json.record(body.text)?.format) || Refusals.hasGrammar(body)],
  ["several_choices", ({ n }) => Refusals.isSeveral(n)],
  [
    "logprobs",
    ({ include, top_logprobs }) =>
      Refusals.isCount(top_logprobs) || Json.list(include).some((it) => Json.string(it).endsWith(".logprobs")),
  ],
  ["not_text", ({ audio, modalities }) => Refusals.isNotText(modalities) || Refusals.says(audio)],
  ["forced_tool", ({ tool_choice }) => Refusals.demandsCall(tool_choice)],
];

/** Why the response to a request cannot go on; undefined where nothing of the request forbids it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
