/**
 * Holds the breakers of a process's routes, of each the newest state.
 */
import { dropOldest } from "../domain/Limits.ts";
import * as Breaker from "./Breaker.ts";

/** Most routes whose breakers are told apart; beyond them the least recently used one is forgotten, and is closed again (L11). */
export const breakersMax = 256;

/** The breakers of one process. Times are monotonic milliseconds. */
export class Breakers {
  readonly #breakers = new Map<string, Breaker.Breaker>();

  /** How a route's breaker stands for a run that does not go by it yet. */
  standing(route: string, now: number): Breaker.BreakerStanding {
    return Breaker.standing(this.#of(route), now);
  }

  /** A run goes by the route from now on. */
  entered(route: string, run: string, now: number): void {
    this.#set(route, Breaker.entered(this.#of(route), run, now));
  }

  /** A run has met a failure that speaks against the route. */
  failed(route: string, run: string, now: number): void {
    this.#set(route, Breaker.failed(this.#of(route), run, now));
  }

  /** The route has refused what is its own: its credential or its model. */
  refused(route: string, now: number): void {
    this.#set(route, Breaker.refused(this.#of(route), now));
  }

  /** The route has answered a run. */
  answered(route: string, run: string): void {
    this.#set(route, Breaker.answered(this.#of(route), run));
  }

  /** The run goes by the route no more. */
  left(route: string, run: string, now: number): void {
    this.#set(route, Breaker.left(this.#of(route), run, now));
  }

  /** How many breakers are remembered: a closed one without a failure is not. */
  get size(): number {
    return this.#breakers.size;
  }

  #of(route: string): Breaker.Breaker {
    return this.#breakers.get(route) ?? Breaker.closed;
  }

  #set(route: string, breaker: Breaker.Breaker): void {
    this.#breakers.delete(route);
    if (breaker === Breaker.closed) return;
    this.#breakers.set(route, breaker);
    dropOldest(this.#breakers, breakersMax);
  }
}
