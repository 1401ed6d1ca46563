/**
 * Makes a stream whose channel is built only where somebody asks for it.
 *
 * Effect builds a channel by setting a function as its property. V8 allocates such a function among the old objects, and each minor
 * collection takes what it refers to for alive: a run would be copied, and kept until the next full collection. What reads a stream
 * without its channel (an attempt, a relay) has that stream without one. For the same reason no function that belongs to one run is set
 * as a property by an assignment here: it is handed over as an argument.
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
 * A stream that is made where its channel is asked for.
 *
 * @param make called each time
 */
export const lazily = <A, E, R>(make: () => Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  // Its prototype is that of every stream, which TypeScript does not see.
  new LazyStream(make) as unknown as Stream.Stream<A, E, R>;

const opener = Symbol("open");

type Opened<A, E, R> = Effect.Effect<Pull.Pull<ReadonlyArray<A>, E, void>, E | Cause.Done, R>;

/** How a stream is begun without its channel. */
interface Openable<A, E, R> {
  readonly [opener]?: (scope: Scope.Scope) => Opened<A, E, R>;
}

/** The same stream, which `pullIn` opens so. */
export const openedBy = <A, E, R>(
  stream: Stream.Stream<A, E, R>,
  open: (scope: Scope.Scope) => Opened<A, E, R>,
): Stream.Stream<A, E, R> => Object.assign(stream, { [opener]: open });

/** Opens a stream in a scope, without its channel where it has a way. What opening fails with is what a pull fails with. */
export const pullIn = <A, E, R>(
  stream: Stream.Stream<A, E, R> & Openable<A, E, R>,
  scope: Scope.Scope,
): Effect.Effect<Pull.Pull<ReadonlyArray<A>, E, void, R>, never, R> => {
  const open = stream[opener];
  if (open === undefined) return Channel.toPullScoped(Stream.toChannel(stream), scope);
  return Effect.catchCause(open(scope), (cause) => Effect.succeed(Effect.failCause(cause)));
};
