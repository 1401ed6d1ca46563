/**
 * Divides the throttle by the processes that drive runs over one store.
 */
import * as Effect from "effect/Effect";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import type { Throttle } from "./Throttle.ts";

/** From one look at how many they are to the next, in milliseconds: a third of a lease. */
export const livingLookMs = 5_000;

/** Gives this process its part, for ever. A store that is away leaves it as it was. */
export const dividing = (throttle: Throttle, pacing: SharedPacing): Effect.Effect<never> =>
  Effect.forever(
    Effect.andThen(Effect.ignore(Effect.map(pacing.living, (n) => throttle.sharedBy(n))), Effect.sleep(livingLookMs)),
  );
