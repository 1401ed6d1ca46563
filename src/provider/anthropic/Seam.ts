/**
 * Decides which requests of Anthropic Messages rule out continuing their response.
 *
 * Before `output_config.format`, a schema was requested by a forced tool. The text next to such a call is not an answer to continue.
 * `container` and `mcp_servers` are allowed, because they act in a response only through calls, and the splice refuses to continue after a
 * call that was sent.
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

/** The reason why the response to a request cannot be continued; undefined if the request allows it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
