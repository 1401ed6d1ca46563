/** Seeded random choices: the same seed gives the same choices. */
import { seeded } from "../Seeded.ts";

/** One entry of a weighted choice. */
export type Weighted<A> = readonly [weight: number, value: A];

export class Dice {
  /** A number in [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seeded(seed);
  }

  /** Returns true with the given probability. */
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

  /** Makes `count` values of one kind. */
  times<A>(count: number, make: (index: number) => A): Array<A> {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}
