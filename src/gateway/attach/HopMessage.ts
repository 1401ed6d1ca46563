/**
 * Defines the messages of a hop: a client of one process gets the response of a run of another process.
 *
 * The asking process has the client, the owner has the run. They are two workers of one gateway, or two gateways. Each message is JSON in a
 * header of a signed request (`SignedWire`), so that bodies contain only the response's own bytes:
 *
 * 1. `HopAsked`, in the request. The owner alone decides whether the client may attach, in one step, as it does for its own clients.
 *
 * 2. `HopFacts`, in an interim response, after the client has become the run's reader. The response head may come later.
 *
 * 3. `HopHead`, in the response's head: the run's head, a document, a break, or `None` if the client cannot attach.
 *
 * 4. `HopEnd`, in the trailers. A response without it is broken, because the owner has died.
 *
 * JSON has no undefined, so missing values are null.
 */
import { Schema } from "effect";
import { kinds } from "../../domain/Failure.ts";
import { Label, Status } from "../../domain/Limits.ts";
import { GatewayAddress } from "../config/GatewayAddress.ts";
import type { AccessRecord } from "../log/AccessRecord.ts";

/** An HMAC, in hexadecimal digits. */
export const HopKey = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32,128}$/));

/** The response that the asking process wants from the owner. */
export const HopWish = Schema.Union([
  /** A request that may repeat one of the owner's runs. */
  Schema.TaggedStruct("Repeat", {
    key: HopKey,
    repeats: Schema.Boolean,
    asked: Schema.Boolean,
    idempotencyKey: Schema.NullOr(Schema.String.check(Schema.isMaxLength(256))),
  }),
  /** A request for a run by id. */
  Schema.TaggedStruct("Stream", {
    run_id: Label,
    holder: HopKey,
    method: Schema.Literals(["GET", "HEAD", "DELETE"]),
    /** Offset of the next byte that the client needs; null for an invalid offset. */
    from: Schema.NullOr(Schema.Natural),
  }),
]);
export type HopWish = typeof HopWish.Type;

/** A request for a run by id. */
export type StreamWish = Extract<HopWish, { readonly _tag: "Stream" }>;

/** First message of a hop, from the asking process to the owner. */
export const HopAsked = Schema.Struct({
  /** Address of the asking gateway; null for a worker of the same gateway. */
  from: Schema.NullOr(GatewayAddress),
  /**
   * The asking worker, and the number that it gave to this hop. The owner sends both numbers back to ask whether the client's socket is silent.
   */
  worker: Schema.Natural,
  hop: Schema.Natural,
  wish: HopWish,
});
export type HopAsked = typeof HopAsked.Type;

// `Object.keys` returns exactly the keys of this object literal, so the cast is safe.
const kindNames = Object.keys(kinds) as ReadonlyArray<keyof typeof kinds>;

/** Facts about the run, for the access log of the asking process. */
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

/** Third message of a hop: the kind of the response and its head. */
export const HopHead = Schema.Union([
  /** There is no run that the request may attach to. */
  Schema.TaggedStruct("None", {}),
  Schema.TaggedStruct("Broken", { facts: HopFacts }),
  /** The body is a document that the gateway wrote. */
  Schema.TaggedStruct("Answer", { status: Status, headers: Headers, facts: HopFacts }),
  /** The body is the run's response. */
  Schema.TaggedStruct("Head", {
    status: Status,
    statusText: Schema.String,
    headers: Headers,
    streaming: Schema.Boolean,
    facts: HopFacts,
  }),
]);
export type HopHead = typeof HopHead.Type;

/** Last message of a hop: the end of the response. */
export const HopEnd = Schema.Struct({ how: Schema.Literals(["whole", "broken"]), facts: HopFacts });
export type HopEnd = typeof HopEnd.Type;

/** Encodes a message as the value of a header. */
export const encode = (word: HopAsked | HopFacts | HopHead | HopEnd): string =>
  encodeURIComponent(JSON.stringify(word));

/** Decodes a message; undefined if it is invalid, for example from another version of this program. */
export const read = <A>(schema: Schema.Codec<A, unknown>, text: unknown): A | undefined => {
  if (typeof text !== "string") return undefined;
  try {
    const found = Schema.decodeUnknownOption(schema)(JSON.parse(decodeURIComponent(text)));
    return found._tag === "Some" ? found.value : undefined;
  } catch {
    return undefined;
  }
};

/** Selects the facts that the owner sends to the asking process. */
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
