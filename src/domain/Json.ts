/** Reads JSON of unknown origin without trusting its shape. A missing member reads as an empty value. */

/** A JSON object with unknown members. */
export type JsonRecord = { readonly [key: string]: unknown };

/**
 * Parses a string as JSON.
 *
 * @returns the value in an object, because `null` is valid JSON; undefined if the string is not JSON
 */
export const parse = (text: string): { readonly json: unknown } | undefined => {
  try {
    return { json: JSON.parse(text) };
  } catch {
    // Invalid JSON is a result here instead of an error, because the caller decides what it means.
    return undefined;
  }
};

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the value as an object; undefined for arrays, null and scalars. */
export const record = (value: unknown): JsonRecord | undefined => (isRecord(value) ? value : undefined);

const noItems: ReadonlyArray<unknown> = [];

/** Returns the value as a list; empty if it is not a list. */
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : noItems);

/** Returns the value as a string; empty if it is not a string. */
export const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns the value as a count; undefined if it is not a safe integer or is negative. */
export const natural = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Reads a record's own member. The name is untrusted and may be `constructor` or `__proto__`. */
export const own = <A>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined;
