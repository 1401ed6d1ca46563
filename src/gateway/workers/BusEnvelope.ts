/**
 * Describes how a message travels between the supervisor and its workers.
 */
import { Schema } from "effect";

/** A worker by its number, 1 and up; 0 is the supervisor. */
export const BusMember = Schema.Natural;

/** Why nobody replied. */
export const QueryFailure = Schema.Literals(["gone", "late", "busy", "unknown", "bad_message", "failed"]).annotate({
  description:
    "gone: there is no such worker, or it has died meanwhile; late: no reply in time; busy: too much is asked already; unknown: it listens to no such query; bad_message: asked or replied is not what the schema says; failed: a defect behind the query",
});
export type QueryFailure = typeof QueryFailure.Type;

const Topic = Schema.String.check(Schema.isMaxLength(64));

/** What the router carries. It reads everything but the body. */
export const BusEnvelope = Schema.Union([
  Schema.TaggedStruct("Notice", {
    topic: Topic,
    from: BusMember,
    to: Schema.Union([BusMember, Schema.Literal("others")]),
    body: Schema.Unknown,
  }),
  Schema.TaggedStruct("Query", {
    topic: Topic,
    from: BusMember,
    to: BusMember,
    id: Schema.Natural,
    body: Schema.Unknown,
  }),
  Schema.TaggedStruct("Reply", { from: BusMember, to: BusMember, id: Schema.Natural, body: Schema.Unknown }),
  Schema.TaggedStruct("Failure", { from: BusMember, to: BusMember, id: Schema.Natural, reason: QueryFailure }),
  /** A worker takes messages from now on. Only the router says so. */
  Schema.TaggedStruct("Joined", {
    from: BusMember,
    /** What all know together is to be told to it by the one that hears this, which is of those that have been there for longest. */
    isToBeTold: Schema.optionalKey(Schema.Boolean),
  }),
  /** A worker has died: nothing comes from it any more. Only the router says so. */
  Schema.TaggedStruct("Left", { from: BusMember }),
]);
export type BusEnvelope = typeof BusEnvelope.Type;

/** What a member may send. */
export type SentEnvelope = Exclude<BusEnvelope, { readonly _tag: "Joined" | "Left" }>;

/** Whether an envelope says who is there. */
export const isNews = ({ _tag }: BusEnvelope): boolean => _tag === "Joined" || _tag === "Left";

/** The way of envelopes to one member. */
export interface BusPort {
  /**
   * Gives whether the envelope was taken: not where the other end is gone, or has not taken earlier ones yet. Who has come and who is gone
   * (`isNews`) is taken whatever waits: one that never heard of it would pass a sibling over for good.
   */
  readonly send: (envelope: BusEnvelope) => boolean;
}
