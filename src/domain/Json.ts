/**
 * Reads JSON of unknown origin without trusting its shape: a missing member reads as nothing.
 */

/** A JSON object whose members are not known. */
export type JsonRecord = { readonly [key: string]: unknown };

/**
 * Parses a text.
 *
 * @param text any text
 * @returns the value in a box, because `null` is JSON too; undefined when the text is none
 */
export const parse = (text: string): { readonly json: unknown } | undefined => {
  try {
    return { json: JSON.parse(text) };
  } catch {
    // A text that is not JSON is a result here and no error: the caller says what it means.
    return undefined;
  }
};

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value as an object; undefined for arrays, null and scalars. */
export const record = (value: unknown): JsonRecord | undefined => (isRecord(value) ? value : undefined);

const noItems: ReadonlyArray<unknown> = [];

/** The value as a list; empty when it is none. */
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : noItems);

/** The value as a text; empty when it is none. */
export const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** The value as a count; undefined when it is not a safe integer from 0. */
export const natural = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** A value of a record by a name that someone else chose: `constructor` and `__proto__` are names too. */
export const own = <A>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined;
