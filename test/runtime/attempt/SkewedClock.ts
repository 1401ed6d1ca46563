import { Clock, Effect, Layer } from "effect";

/** A clock that can be set and stopped: what this process sees when it does not run, or when its time is set. */
export const skewed = () => {
  const skew = { wall: 0, monotonic: 0 };
  const layer = Layer.effect(
    Clock.Clock,
    Effect.map(
      Clock.Clock,
      (clock): Clock.Clock => ({
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + skew.wall,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + BigInt(skew.monotonic) * 1_000_000n,
        sleep: (duration) => clock.sleep(duration),
      }),
    ),
  );
  return { skew, layer };
};
