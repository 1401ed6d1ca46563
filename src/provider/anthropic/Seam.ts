/**
 * Decides which requests of Anthropic Messages rule out continuing their response.
 *
 * A forced tool is how a schema was requested before `output_config.format`: the text beside it is not an answer to continue.
 * `container` and `mcp_servers` are allowed, because anything they did in a response is a call that has left, which the splice
 * refuses.
 */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "structured_output",
    ({ output_config, output_format }) =>
      Refusals.isStructured(Json.record(output_config)?.format) || Refusals.isStructured(output_format),
  ],
  ["several_choices", ({ n }) => Refusals.isSeveral(n)],
  ["forced_tool", ({ tool_choice }) => Refusals.isCallDemanded(tool_choice)],
];

/** The reason a request's response cannot be continued; undefined if the request allows it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
