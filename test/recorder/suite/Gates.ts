/**
 * Holds operations at named points, for tests in which another process acts in the meantime.
 */
import { Deferred, Effect } from "effect";
import type { Held } from "./Zombies.ts";

/** Gates that hold an operation when it arrives. */
export interface Gates {
  /** Holds the next operation that reaches a point, once. */
  readonly hold: (point: string) => Held;
  /** Called when an operation reaches a point. */
  readonly at: (point: string) => Effect.Effect<void>;
}

/** Creates gates without any set. */
export const make = (): Gates => {
  const set = new Map<string, { readonly reached: Deferred.Deferred<void>; readonly open: Deferred.Deferred<void> }>();
  return {
    hold: (point) => {
      const gate = { reached: Deferred.makeUnsafe<void>(), open: Deferred.makeUnsafe<void>() };
      set.set(point, gate);
      return { reached: Deferred.await(gate.reached), release: Effect.asVoid(Deferred.succeed(gate.open, undefined)) };
    },
    at: (point) =>
      Effect.suspend(() => {
        const gate = set.get(point);
        if (gate === undefined) return Effect.void;
        set.delete(point);
        return Effect.andThen(Deferred.succeed(gate.reached, undefined), Deferred.await(gate.open));
      }),
  };
};
