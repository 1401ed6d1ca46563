/**
 * A stream that builds its channel only on demand.
 *
 * Effect builds a channel by setting a function as a property. V8 allocates such functions in the old generation, and every minor
 * collection treats their references as live, so a whole run would be copied and kept until the next full collection. Code that
 * reads a stream without its channel (an attempt, a relay) avoids this. For the same reason this file never assigns a per-run
 * function to a property but passes it as an argument.
 */
import type * as Cause from "effect/Cause";
import * as Channel from "effect/Channel";
import * as Effect from "effect/Effect";
import type * as Pull from "effect/Pull";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";

class LazyStream<A, E, R> {
  readonly #make: () => Stream.Stream<A, E, R>;

  constructor(make: () => Stream.Stream<A, E, R>) {
    this.#make = make;
  }

  get channel(): Stream.Stream<A, E, R>["channel"] {
    return this.#make().channel;
  }
}

Object.setPrototypeOf(LazyStream.prototype, Object.getPrototypeOf(Stream.empty));

/**
 * Returns a stream that is built each time its channel is requested.
 *
 * @param make builds the stream; called on each request
 */
export const makeLazy = <A, E, R>(make: () => Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  // LazyStream has the prototype of every stream, which TypeScript cannot see.
  new LazyStream(make) as unknown as Stream.Stream<A, E, R>;

const opener = Symbol("open");

type Opened<A, E, R> = Effect.Effect<Pull.Pull<ReadonlyArray<A>, E, void>, E | Cause.Done, R>;

/** A stream that can be opened without its channel. */
interface Openable<A, E, R> {
  readonly [opener]?: (scope: Scope.Scope) => Opened<A, E, R>;
}

/** Attaches a way to open the stream without its channel, for `openPull`. */
export const withOpener = <A, E, R>(
  stream: Stream.Stream<A, E, R>,
  open: (scope: Scope.Scope) => Opened<A, E, R>,
): Stream.Stream<A, E, R> => Object.assign(stream, { [opener]: open });

/** Opens a stream in a scope, bypassing its channel if possible. A failure to open surfaces as the failure of the first pull. */
export const openPull = <A, E, R>(
  stream: Stream.Stream<A, E, R> & Openable<A, E, R>,
  scope: Scope.Scope,
): Effect.Effect<Pull.Pull<ReadonlyArray<A>, E, void, R>, never, R> => {
  const open = stream[opener];
  if (open === undefined) return Channel.toPullScoped(Stream.toChannel(stream), scope);
  return Effect.catchCause(open(scope), (cause) => Effect.succeed(Effect.failCause(cause)));
};
