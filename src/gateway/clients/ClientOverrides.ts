/**
 * Describes how a configuration changes the client table: an override changes fields of a built-in row or adds a row.
 */
import { Schema } from "effect";
import { clientRows, unknownName } from "./ClientRows.ts";

/**
 * Maximum time that a response head may be withheld, in milliseconds. undici stops waiting for a head after 300 s, regardless of its
 * caller's timeout.
 */
export const patienceMaxMs = 240_000;

const rowsMax = 64;

const builtIn: ReadonlySet<string> = new Set([...clientRows.map(({ name }) => name), unknownName]);

/** A property of a request by which a configured row recognises its client. */
export const ClientMatch = Schema.Union([
  /** Prefix of the user agent. */
  Schema.Struct({ userAgent: Schema.NonEmptyString }),
  /** A header that the request must have. Its value must start with `value`, if that is given. */
  Schema.Struct({ header: Schema.NonEmptyString, value: Schema.optionalKey(Schema.String) }),
]);
export type ClientMatch = typeof ClientMatch.Type;

/** The configuration of one client. Omitted fields keep their built-in values. */
export const ClientOverride = Schema.Struct({
  /** The property by which the client is recognised. Required for a name that no built-in row has. */
  match: Schema.optionalKey(ClientMatch),
  /** The built-in client whose treatment this client gets; `unknown` if omitted. */
  as: Schema.optionalKey(Schema.Literals([...clientRows.map(({ name }) => name), unknownName])),
  reveal: Schema.optionalKey(Schema.Literals(["live", "on_complete"])),
  onBreak: Schema.optionalKey(Schema.Literals(["tell", "abort", "as_provider"])),
  /** In milliseconds. */
  patienceMs: Schema.optionalKey(Schema.Natural.check(Schema.isLessThanOrEqualTo(patienceMaxMs))),
  /** In milliseconds. */
  holdMaxMs: Schema.optionalKey(Schema.Natural),
  status: Schema.optionalKey(Schema.Literals([400, 424])),
  ending: Schema.optionalKey(Schema.Literals(["clean", "broken"])),
  firstNoOp: Schema.optionalKey(Schema.Literals(["event", "comment"])),
});
export type ClientOverride = typeof ClientOverride.Type;

/**
 * Client configuration by name. The name of a built-in row (or `unknown`) changes fields of that row. Any other name adds a row. Added rows
 * are matched before all built-in ones, in the order of the file.
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
  if (builtIn.has(name)) {
    const moved = override?.match !== undefined || override?.as !== undefined;
    return moved ? "expected neither `match` nor `as`, because this is the name of a built-in client" : undefined;
  }
  if (!/^[a-z0-9-]{1,32}$/.test(name)) return "expected a name of at most 32 lower-case letters, digits and hyphens";
  return override?.match === undefined ? "expected `match`, because no built-in client has this name" : undefined;
};
