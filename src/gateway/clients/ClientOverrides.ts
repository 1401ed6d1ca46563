/**
 * Describes how a configuration changes the table of clients: fields of shipped rows, and rows of its own.
 */
import { Schema } from "effect";

/** Fields that a row may change. Times are milliseconds. */
const fields = {
  reveal: Schema.optionalKey(Schema.Literals(["live", "on_complete"])),
  onBreak: Schema.optionalKey(Schema.Literals(["tell", "abort", "as_provider"])),
  patienceMs: Schema.optionalKey(Schema.Natural.check(Schema.isLessThanOrEqualTo(240_000))),
  holdMaxMs: Schema.optionalKey(Schema.Natural),
  status: Schema.optionalKey(Schema.Literals([400, 424])),
  ending: Schema.optionalKey(Schema.Literals(["clean", "reset"])),
  firstNoOp: Schema.optionalKey(Schema.Literals(["event", "comment"])),
} as const;

/** What a configuration says of clients. */
export const ClientOverrides = Schema.Struct({
  /** Fields of shipped rows, by the client's name; `unknown` is all others. */
  rows: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct(fields))),
});
export type ClientOverrides = typeof ClientOverrides.Type;
