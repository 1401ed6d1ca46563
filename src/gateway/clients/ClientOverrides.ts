/**
 * Describes how a configuration changes the table of clients: fields of shipped rows, and rows of its own.
 */
import { Schema } from "effect";
import { clientRows, unknownName } from "./ClientRows.ts";

/** Longest that a head is withheld, in milliseconds: undici gives a head up after 300 s, whatever its caller waits. */
export const patienceMaxMs = 240_000;

/** Most rows that a configuration may have. */
const rowsMax = 64;

/** The names of the table that is shipped. */
const shipped: ReadonlySet<string> = new Set([...clientRows.map(({ name }) => name), unknownName]);

/** A mark of a request, by which a row of the configuration's own is recognised. */
export const ClientMatch = Schema.Union([
  /** What the user agent begins with. */
  Schema.Struct({ userAgent: Schema.NonEmptyString }),
  /** A header that the request has, and what its value begins with, where that matters. */
  Schema.Struct({ header: Schema.NonEmptyString, value: Schema.optionalKey(Schema.String) }),
]);
export type ClientMatch = typeof ClientMatch.Type;

/** What a configuration says of one client. Of the fields of a row those that are left out stay as they are shipped. */
export const ClientOverride = Schema.Struct({
  /** How it is recognised; needed by a name that no shipped row has. */
  match: Schema.optionalKey(ClientMatch),
  /** The shipped client that it is treated as; `unknown` where it is left out. */
  as: Schema.optionalKey(Schema.Literals([...clientRows.map(({ name }) => name), unknownName])),
  reveal: Schema.optionalKey(Schema.Literals(["live", "on_complete"])),
  onBreak: Schema.optionalKey(Schema.Literals(["tell", "abort", "as_provider"])),
  /** Milliseconds. */
  patienceMs: Schema.optionalKey(Schema.Natural.check(Schema.isLessThanOrEqualTo(patienceMaxMs))),
  /** Milliseconds. */
  holdMaxMs: Schema.optionalKey(Schema.Natural),
  status: Schema.optionalKey(Schema.Literals([400, 424])),
  ending: Schema.optionalKey(Schema.Literals(["clean", "broken"])),
  firstNoOp: Schema.optionalKey(Schema.Literals(["event", "comment"])),
});
export type ClientOverride = typeof ClientOverride.Type;

/**
 * What a configuration says of clients, by name. A shipped name (or `unknown`) changes the fields of that row; any other name
 * makes a row of its own, which is asked before all shipped ones, in the order of the file.
 */
export const ClientOverrides = Schema.Record(Schema.String, ClientOverride).check(
  Schema.makeFilter((overrides) => {
    const names = Object.keys(overrides);
    if (names.length > rowsMax) return `expected at most ${rowsMax} clients, got ${names.length}`;
    return names.flatMap((name) => {
      const issue = issueOf(name, overrides[name]);
      return issue === undefined ? [] : [{ path: [name], issue }];
    });
  }),
);
export type ClientOverrides = typeof ClientOverrides.Type;

const issueOf = (name: string, override: ClientOverride | undefined): string | undefined => {
  if (shipped.has(name)) {
    const moved = override?.match !== undefined || override?.as !== undefined;
    return moved ? "expected no match and no as: the name is a shipped client's" : undefined;
  }
  if (!/^[a-z0-9-]{1,32}$/.test(name)) return "expected a name of at most 32 lower-case letters, digits and hyphens";
  return override?.match === undefined ? "expected a match: no shipped client has the name" : undefined;
};
