/**
 * Describes what in a request forbids to go on with a shown text: a table for each protocol, asked before anything is sent.
 */
import * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";

/** Why a request's response cannot go on, and what in its body says so. */
export type RefusalRow = readonly [refusal: SeamRefusal, says: (body: Json.JsonRecord) => boolean];

/**
 * The first row that a body is refused by.
 *
 * @returns undefined where nothing of the request forbids it
 */
export const refusalOf = (rows: ReadonlyArray<RefusalRow>, body: Json.JsonRecord): SeamRefusal | undefined =>
  rows.find(([, says]) => says(body))?.[0];

/** Whether a field says something: servers of typed languages send `null` and `false` where there is nothing. */
export const says = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

/** Whether a count asks for one or more. */
export const isCount = (count: unknown): boolean => (Json.natural(count) ?? 0) > 0;

/** Whether a list of the kinds of output names another one than text. */
export const isNotText = (kinds: unknown): boolean =>
  Json.list(kinds).some((kind) => Json.string(kind).toLowerCase() !== "text");

/** Whether a count asks for more than one. */
export const isSeveral = (count: unknown): boolean => (Json.natural(count) ?? 1) > 1;

/**
 * Whether a `tool_choice` of the OpenAI family demands a call. One that only names what may be called demands none.
 */
export const demandsCall = (choice: unknown): boolean => {
  const named = Json.record(choice);
  if (named === undefined) return says(choice) && choice !== "auto" && choice !== "none";
  if (named.type !== "allowed_tools") return named.type !== "auto" && named.type !== "none";
  return demandsCall(Json.record(named.allowed_tools)?.mode ?? named.mode);
};

/**
 * Fields by which servers that imitate OpenAI bind the whole response to a grammar (vLLM, SGLang, llama.cpp). The rest of such a
 * response would have to begin the grammar anew.
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

/** Whether a body binds the response to a grammar. */
export const hasGrammar = (body: Json.JsonRecord): boolean => grammarFields.some((field) => says(body[field]));

/** Whether a format asks for anything else than text. */
export const isStructured = (format: unknown): boolean => {
  const type = Json.string(Json.record(format)?.type ?? format);
  return type !== "" && type !== "text";
};
