/** Reads JSON of unknown origin without trusting its shape. A missing member reads as an empty value. */

/** A JSON object with unknown members. */
export type JsonRecord = { readonly [key: string]: unknown };

/**
 * Parses a string as JSON.
 *
 * @param text any string
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

/** The part of ECMAScript that TypeScript does not declare yet (tc39/proposal-json-parse-with-source). */
interface SourceJson {
  readonly parse: (
    text: string,
    revive: (key: string, value: unknown, at: { readonly source?: string }) => unknown,
  ) => unknown;
  readonly rawJSON?: (source: string) => object;
}

/**
 * Parses JSON so that `JSON.stringify` writes every number with its own digits. A number that no double holds, for example a 64-bit bound
 * in a tool's schema, becomes an object.
 *
 * @returns undefined if the text is not JSON, or if this runtime cannot keep its numbers
 */
export const parseExactly = (text: string): { readonly json: unknown } | undefined => {
  const { parse: parseWith, rawJSON } = JSON as unknown as SourceJson;
  if (!mayBeInexact.test(text)) return parse(text);
  if (rawJSON === undefined || parse(text) === undefined) return undefined;
  return {
    json: parseWith(text, (_key, value, { source = "" }) =>
      typeof value === "number" && !isExact(value, source) ? rawJSON(source) : value,
    ),
  };
};

/** Matches every number with an exponent or with more than 15 digits, and perhaps text in a string. */
const mayBeInexact = /\d[eE]|[\d.]{16}/;

const isExact = (value: number, source: string): boolean =>
  String(value) === source || (Number.isSafeInteger(value) && /^-?\d+(?:\.0+)?$/.test(source));

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

/** Reads a record by an untrusted name, which may be `constructor` or `__proto__`. */
export const own = <A>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined;
