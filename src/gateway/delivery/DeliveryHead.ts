/**
 * Reads the head of a response as the delivery log has it.
 */
import { Option, Schema } from "effect";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";

const Head = Schema.fromJsonString(
  Schema.Struct({
    head: Schema.Struct({
      status: Schema.Int,
      statusText: Schema.String,
      headers: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
    }),
    streaming: Schema.Boolean,
  }),
);

const decoded = Schema.decodeUnknownOption(Head);

/** The head in a part's bytes; undefined for what a program of another version has written. */
export const headIn = (bytes: Buffer): { readonly head: RelayHead; readonly streaming: boolean } | undefined =>
  Option.getOrUndefined(decoded(bytes.toString()));
