/** Rolls dice that fall the same way for the same seed. */

/** One entry of a weighted choice: how often, and what. */
export type Weighted<A> = readonly [weight: number, value: A];

/** A seeded source of choices: Mulberry32, small and good enough to pick test cases. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** A number from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<A>(values: readonly [A, ...Array<A>]): A {
    return values[Math.floor(this.next() * values.length)] ?? values[0];
  }

  weighted<A>(values: readonly [Weighted<A>, ...Array<Weighted<A>>]): A {
    let left = this.next() * values.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of values) {
      left -= weight;
      if (left < 0) return value;
    }
    return values[0][1];
  }

  /** So many values of one kind. */
  times<A>(count: number, make: (index: number) => A): Array<A> {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}
