/**
 * Reads fields of a Gemini request, which the API accepts in camel case and in snake case.
 */
import * as Json from "../../domain/Json.ts";

/** The spelling of a field in a record: camel case, or snake case if only that is present. */
export const nameIn = (record: Json.JsonRecord, name: string): string => {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return record[name] === undefined && record[snake] !== undefined ? snake : name;
};

/** The value of a field, by its name in camel case. */
export const fieldOf = (record: Json.JsonRecord, name: string): unknown => record[nameIn(record, name)];

/** The request itself, which Code Assist nests one level deeper. */
export const requestIn = (body: Json.JsonRecord): Json.JsonRecord =>
  body.contents === undefined ? (Json.record(body.request) ?? body) : body;
