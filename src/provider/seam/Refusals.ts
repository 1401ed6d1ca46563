/** Describes the requests whose response cannot be continued. Each protocol has one table, which is checked before anything is sent. */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";

/** A refusal, and a test for requests that cause it. */
export type RefusalRow = readonly [refusal: SeamRefusal, says: (body: Json.JsonRecord) => boolean];

/**
 * The refusal of the first row that matches a body.
 *
 * @returns undefined if nothing in the request forbids a continuation
 */
export const refusalOf = (rows: ReadonlyArray<RefusalRow>, body: Json.JsonRecord): SeamRefusal | undefined =>
  rows.find(([, says]) => says(body))?.[0];

/** True if a field has a value. Programs in typed languages send `null` and `false` for absent fields. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

/** True if a count is one or more. */
export const isCount = (count: unknown): boolean => (Json.natural(count) ?? 0) > 0;

/** True if a list of output kinds names any kind other than text. */
export const isNotText = (kinds: unknown): boolean =>
  Json.list(kinds).some((kind) => Json.string(kind).toLowerCase() !== "text");

/** True if a count is more than one. */
export const isSeveral = (count: unknown): boolean => (Json.natural(count) ?? 1) > 1;

/** True if a `tool_choice` of the OpenAI family demands a call. A choice that only restricts the allowed tools does not demand a call. */
export const isCallDemanded = (choice: unknown): boolean => {
  const named = Json.record(choice);
  if (named === undefined) return isSet(choice) && choice !== "auto" && choice !== "none";
  if (named.type !== "allowed_tools") return named.type !== "auto" && named.type !== "none";
  return isCallDemanded(Json.record(named.allowed_tools)?.mode ?? named.mode);
};

/**
 * Fields of servers that imitate OpenAI (vLLM, SGLang, llama.cpp). They bind the whole response to a grammar. The rest of a response alone
 * would not match the grammar.
 */
const grammarFields = [
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "structured_outputs",
  "json_schema",
  "grammar",
  "regex",
  "ebnf",
];

/** True if a body binds the response to a grammar. */
export const hasGrammar = (body: Json.JsonRecord): boolean => grammarFields.some((field) => isSet(body[field]));

/** True if a format asks for anything other than text. */
export const isStructured = (format: unknown): boolean => {
  const type = Json.string(Json.record(format)?.type ?? format);
  return type !== "" && type !== "text";
};
