/**
 * Says which requests of Anthropic Messages have responses that cannot go on.
 *
 * A tool that has to be called is how a schema was asked for before `output_config.format`: what is shown beside it is no answer
 * that could go on. `container` and `mcp_servers` forbid nothing: what they did in a response is a call that has left, which the
 * splice refuses.
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
  ["forced_tool", ({ tool_choice }) => Refusals.demandsCall(tool_choice)],
];

/** Why the response to a request cannot go on; undefined where nothing of the request forbids it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined => Refusals.refusalOf(rows, body);
