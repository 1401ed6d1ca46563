/**
 * A seeded random source for tests (mulberry32): the same seed gives the same numbers in [0, 1).
 */
export const seeded = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

/** One of several, by chance. */
export const oneOf = <A>(random: () => number, all: ReadonlyArray<A>): A => {
  const chosen = all[Math.floor(random() * all.length)];
  if (chosen === undefined) throw new Error("nothing to choose from");
  return chosen;
};
