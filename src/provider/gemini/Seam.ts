/**
 * Decides which requests of Gemini rule out continuing their response. The API accepts every field in two spellings.
 *
 * The mode `VALIDATED` is allowed: like `AUTO`, it lets the model choose between text and a call.
 */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import * as Refusals from "../seam/Refusals.ts";
import { fieldOf, requestIn } from "./Field.ts";

const rows: ReadonlyArray<Refusals.RefusalRow> = [
  [
    "structured_output",
    (request) => {
      const config = configOf(request);
      const type = Json.string(fieldOf(config, "responseMimeType"));
      return (
        (type !== "" && type !== "text/plain") ||
        ["responseSchema", "responseJsonSchema", "_responseJsonSchema", "responseFormat"].some((name) =>
          Refusals.isSet(fieldOf(config, name)),
        )
      );
    },
  ],
  ["several_choices", (request) => Refusals.isSeveral(fieldOf(configOf(request), "candidateCount"))],
  [
    "logprobs",
    (request) => {
      const config = configOf(request);
      return Refusals.isSet(fieldOf(config, "responseLogprobs")) || Refusals.isCount(config.logprobs);
    },
  ],
  [
    "not_text",
    (request) => {
      const config = configOf(request);
      return (
        Refusals.isNotText(fieldOf(config, "responseModalities")) || Refusals.isSet(fieldOf(config, "speechConfig"))
      );
    },
  ],
  [
    "forced_tool",
    (request) => {
      const tools = Json.record(fieldOf(request, "toolConfig")) ?? {};
      const mode = fieldOf(Json.record(fieldOf(tools, "functionCallingConfig")) ?? {}, "mode");
      return Json.string(mode).toUpperCase() === "ANY";
    },
  ],
];

const configOf = (request: Json.JsonRecord): Json.JsonRecord => Json.record(fieldOf(request, "generationConfig")) ?? {};

/** The reason why the response to a request cannot be continued; undefined if the request allows it. */
export const seamRefusal = (body: Json.JsonRecord): SeamRefusal | undefined =>
  Refusals.refusalOf(rows, requestIn(body));
