/**
 * Reads fields of a Gemini request, which the API takes in camel case and in snake case.
 */
import * as Json from "../../domain/Json.ts";

/** The name that a record has a field under: its own, or the one in snake case where only that stands there. */
export const nameIn = (record: Json.JsonRecord, name: string): string => {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return record[name] === undefined && record[snake] !== undefined ? snake : name;
};

/** A field by its name in camel case. */
export const fieldOf = (record: Json.JsonRecord, name: string): unknown => record[nameIn(record, name)];

/** The request itself: Code Assist holds it one level deeper. */
export const requestIn = (body: Json.JsonRecord): Json.JsonRecord =>
  body.contents === undefined ? (Json.record(body.request) ?? body) : body;
