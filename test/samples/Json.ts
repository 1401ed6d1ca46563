/** Reads JSON of any kind without the tested sources, and writes the parts that several samples have in common. */
import type { Problem } from "../gateway/clients/StandIn.ts";

export type Fields = { readonly [name: string]: unknown };

/** The fields of a value. Values of other types have none. */
export const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}; // every object of JSON has named fields
export const list = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.map(fields) : []);
export const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** The value at a path of names and positions; undefined if the path leads nowhere. */
export const at = (json: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, step) => (typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined),
    json,
  );

/** The same as text; undefined for any other type. */
export const textAt = (json: unknown, ...path: ReadonlyArray<string | number>): string | undefined => {
  const value = at(json, ...path);
  return typeof value === "string" ? value : undefined;
};

export const problemOf = (error: unknown, as: Problem["as"]): Problem => ({
  code: textAt(error, "code") ?? textAt(error, "type") ?? textAt(error, "status") ?? "",
  message: textAt(error, "message") ?? "",
  as,
});

/** Violations of calls and results that belong together. */
export const pairs = (
  name: string,
  calls: ReadonlyArray<string>,
  results: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  if (new Set(calls).size !== calls.length) problems.push(`${name}: an id twice: ${calls}`);
  if (new Set(results).size !== results.length) problems.push(`${name}: a call with two results: ${results}`);
  for (const id of calls) if (!results.includes(id)) problems.push(`${name}: the call ${id} dangles`);
  for (const id of results) if (!calls.includes(id)) problems.push(`${name}: a result without the call ${id}`);
  return problems;
};

/** Violations of roles that must alternate and end with the user. */
export const alternate = (roles: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...roles.flatMap((role, at) => (role === roles[at + 1] ? [`two messages of ${role}`] : [])),
  ...(["assistant", "model"].includes(roles.at(-1) ?? "") ? ["ends with the assistant"] : []),
];

/** A text in pieces of at most `size`. A cut may split a character. */
export const pieces = (text: string, size = Number.POSITIVE_INFINITY): ReadonlyArray<string> =>
  size >= text.length
    ? [text].filter((it) => it !== "")
    : Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size));

/** An event whose kind is in its data alone. */
export const dataFrame = (event: object | string): string =>
  `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`;

/** An event with its `type` as its name, too. */
export const namedFrame = (event: object | string): string =>
  `event: ${string(fields(event).type)}\n${dataFrame(event)}`;
