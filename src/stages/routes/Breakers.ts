/** Holds the breakers of a process, one per route. */
import { dropOldest } from "../../domain/Limits.ts";
import * as Breaker from "./Breaker.ts";

/** Maximum routes with a breaker of their own. Beyond it the least recently used breaker is evicted and counts as closed again (L11). */
export const breakersMax = 256;

/** Breakers of one process. Each method applies the function of the same name in `Breaker`. Times are in monotonic milliseconds. */
export class Breakers {
  readonly #breakers = new Map<string, Breaker.Breaker>();

  standingOf(route: string, now: number): Breaker.BreakerStanding {
    return Breaker.standingOf(this.#breakerOf(route), now);
  }

  enter(route: string, run: string, now: number): void {
    this.#set(route, Breaker.enter(this.#breakerOf(route), run, now));
  }

  recordFailure(route: string, run: string, now: number): void {
    this.#set(route, Breaker.recordFailure(this.#breakerOf(route), run, now));
  }

  trip(route: string, now: number): void {
    this.#set(route, Breaker.trip(this.#breakerOf(route), now));
  }

  recordResponse(route: string, run: string): void {
    this.#set(route, Breaker.recordResponse(this.#breakerOf(route), run));
  }

  abandonTrial(route: string, run: string, now: number): void {
    this.#set(route, Breaker.abandonTrial(this.#breakerOf(route), run, now));
  }

  /** Number of breakers that are kept. Closed breakers without a failure are not kept. */
  get size(): number {
    return this.#breakers.size;
  }

  #breakerOf(route: string): Breaker.Breaker {
    return this.#breakers.get(route) ?? Breaker.closed;
  }

  #set(route: string, breaker: Breaker.Breaker): void {
    this.#breakers.delete(route);
    if (breaker === Breaker.closed) return;
    this.#breakers.set(route, breaker);
    dropOldest(this.#breakers, breakersMax);
  }
}
