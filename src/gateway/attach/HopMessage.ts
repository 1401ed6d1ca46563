/**
 * Describes what two workers say to each other where a client of one of them is given the response of a run of the other: a hop.
 *
 * The asking worker has the client, the owner has the run. Each word is JSON in a header of a request over a Unix socket (`HopServer`), so
 * that a body is the response's own bytes and nothing else:
 *
 * 1. `HopAsked`, in the request. The owner alone decides, in one step, as for a client of its own.
 * 2. `HopFacts`, in an interim response, as soon as the client has the place of the run's reader: it may wait for a head from then on.
 * 3. `HopHead`, in the response's head: the run's own head, a document, a break, or nothing to attach to.
 * 4. `HopEnd`, in the trailers. A response without it is broken, as the owner has died.
 *
 * JSON has no word for what is missing: it is null here.
 */
import { Schema } from "effect";
import { kinds } from "../../domain/Failure.ts";
import { Label, Status } from "../../domain/Limits.ts";
import type { AccessRecord } from "../log/AccessRecord.ts";

/** The header that holds such a word. It never leaves this machine. */
export const hopHeader = "x-recovery-hop";

/** The header of the secret that only the workers of one supervisor know. */
export const hopSecretHeader = "x-recovery-hop-secret";

/** Most bytes of a head between two workers: that of a run, in which each byte may be written as three, and more. */
export const hopHeadBytesMax = 1024 * 1024;

/** A keyed digest in hexadecimal digits. */
export const HopKey = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32,128}$/));

/** What is wanted of the owner. */
export const HopWish = Schema.Union([
  /** A request that may repeat one of its runs. */
  Schema.TaggedStruct("Repeat", {
    key: HopKey,
    repeats: Schema.Boolean,
    asked: Schema.Boolean,
    idempotencyKey: Schema.NullOr(Schema.String.check(Schema.isMaxLength(256))),
  }),
  /** A request for a run by its name. */
  Schema.TaggedStruct("Stream", {
    run_id: Label,
    holder: HopKey,
    method: Schema.Literals(["GET", "HEAD", "DELETE"]),
    /** The byte that its client has next; null for what is no number of bytes. */
    from: Schema.NullOr(Schema.Natural),
  }),
]);
export type HopWish = typeof HopWish.Type;

/** A request for a run by its name. */
export type StreamWish = Extract<HopWish, { readonly _tag: "Stream" }>;

/** What is asked. */
export const HopAsked = Schema.Struct({
  /** The asking worker, and its number of this hop: by them the owner asks whether the client's socket is silent. */
  worker: Schema.Natural,
  hop: Schema.Natural,
  wish: HopWish,
});
export type HopAsked = typeof HopAsked.Type;

// The keys of an object literal are all that it has.
const kindNames = Object.keys(kinds) as ReadonlyArray<keyof typeof kinds>;

/** What the owner learns of the run, for the access line of the asking worker. */
export const HopFacts = Schema.Struct({
  run_id: Schema.NullOr(Label),
  attached_at: Schema.NullOr(Schema.Natural),
  route: Schema.NullOr(Label),
  attempts: Schema.NullOr(Schema.Natural),
  rule: Schema.NullOr(Label),
  failure: Schema.NullOr(Schema.Literals(kindNames)),
  code: Schema.NullOr(Label),
  refused: Schema.NullOr(Label),
  no_ops: Schema.NullOr(Schema.Natural),
  waited_ms: Schema.NullOr(Schema.Natural),
  seams: Schema.NullOr(Schema.Natural),
});
export type HopFacts = typeof HopFacts.Type;

const Headers = Schema.Array(Schema.Tuple([Schema.String, Schema.String]));

/** What the response is. */
export const HopHead = Schema.Union([
  /** There is nothing that the request may attach to. */
  Schema.TaggedStruct("None", {}),
  /** The response is broken before its head. */
  Schema.TaggedStruct("Broken", { facts: HopFacts }),
  /** A document of the gateway's own is the body. */
  Schema.TaggedStruct("Answer", { status: Status, headers: Headers, facts: HopFacts }),
  /** The run's own bytes are the body. */
  Schema.TaggedStruct("Head", {
    status: Status,
    statusText: Schema.String,
    headers: Headers,
    streaming: Schema.Boolean,
    facts: HopFacts,
  }),
]);
export type HopHead = typeof HopHead.Type;

/** How it ended. */
export const HopEnd = Schema.Struct({ how: Schema.Literals(["whole", "broken"]), facts: HopFacts });
export type HopEnd = typeof HopEnd.Type;

/** Writes a word for a header. */
export const written = (word: HopAsked | HopFacts | HopHead | HopEnd): string =>
  encodeURIComponent(JSON.stringify(word));

/** Reads such a word; undefined for what is none: another version of this program may have written it. */
export const read = <A>(schema: Schema.Codec<A, unknown>, text: unknown): A | undefined => {
  if (typeof text !== "string") return undefined;
  try {
    const found = Schema.decodeUnknownOption(schema)(JSON.parse(decodeURIComponent(text)));
    return found._tag === "Some" ? found.value : undefined;
  } catch {
    return undefined;
  }
};

/** What the owner tells of a record. */
export const factsOf = (record: AccessRecord): HopFacts => ({
  run_id: record.run_id ?? null,
  attached_at: record.attached_at ?? null,
  route: record.route ?? null,
  attempts: record.attempts ?? null,
  rule: record.rule ?? null,
  failure: record.failure ?? null,
  code: record.code ?? null,
  refused: record.refused ?? null,
  no_ops: record.no_ops ?? null,
  waited_ms: record.waited_ms ?? null,
  seams: record.seams ?? null,
});
