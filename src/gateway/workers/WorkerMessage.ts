/**
 * Describes what the workers of `serve --workers` say to each other.
 *
 * To add a message: make it here with `notice` or `query`, or beside what it is about (a file of any floor above), give it a name that no
 * other has, and a schema that bounds all it holds (L11): what does not fit its schema is dropped by who reads it. Then tell or ask it
 * by `WorkerBus` (`Effect.serviceOption(WorkerBus)`: a gateway that is one process has none), and listen with `on` or `replies`.
 * A message is for what a client or an operator can notice, never for what a stream does with each event: each one costs two processes
 * and the supervisor between them some ten microseconds.
 */
import type { Schema } from "effect";

/** Something is told: it may be lost, and nobody replies. */
export interface Notice<A> {
  readonly name: string;
  readonly schema: MessageSchema<A>;
}

/** Something is asked of one worker, which replies. */
export interface Query<A, B> {
  readonly name: string;
  readonly asked: MessageSchema<A>;
  readonly replied: MessageSchema<B>;
  /** A reply is waited for so long, in milliseconds. */
  readonly replyMs: number;
}

/** How long a reply is waited for by default, in milliseconds. */
export const replyMsDefault = 2_000;

/** Its encoded form is what a structured clone can carry: JSON, and bytes. */
export type MessageSchema<A> = Schema.Codec<A, unknown>;

/** Makes a notice. */
export const notice = <A>(name: string, schema: MessageSchema<A>): Notice<A> => ({ name, schema });

/** Makes a query. */
export const query = <A, B>(
  name: string,
  asked: MessageSchema<A>,
  replied: MessageSchema<B>,
  { replyMs = replyMsDefault }: { readonly replyMs?: number } = {},
): Query<A, B> => ({ name, asked, replied, replyMs });
