/**
 * Remembers the events of a response that have come and not left, in their order.
 *
 * Nearly always there is one, and the next to leave is the first. A set would be made anew every few events, because what is taken out
 * of one keeps its place.
 */
import type { RelayPart } from "./RelayFrames.ts";

/** Most places that are kept for events to come. */
const placesMax = 64;

/** Events that have come and not left: as many as their run may hold. */
export class WaitingParts {
  #places: Array<RelayPart | undefined> = [];
  #first = 0;
  #end = 0;

  /** They, the oldest first. */
  get all(): ReadonlyArray<RelayPart> {
    return this.#places.slice(this.#first, this.#end).flatMap((part) => part ?? []);
  }

  /** One more has come. */
  add(part: RelayPart): void {
    this.#places[this.#end] = part;
    this.#end += 1;
  }

  /** One has left, or never will. */
  remove(part: RelayPart): void {
    if (this.#places[this.#first] !== part) {
      const at = this.#places.indexOf(part, this.#first);
      if (at === -1) return;
      this.#places.splice(at, 1);
      this.#end -= 1;
      return;
    }
    this.#places[this.#first] = undefined;
    this.#first += 1;
    if (this.#first < this.#end && this.#first < placesMax) return;
    if (this.#first === this.#end && this.#places.length <= placesMax) this.#end = 0;
    else if (2 * this.#first >= this.#end) {
      this.#places = this.#places.slice(this.#first, this.#end);
      this.#end -= this.#first;
    } else return;
    this.#first = 0;
  }

  /** None of them leaves any more. */
  clear(): void {
    this.#places = [];
    this.#first = 0;
    this.#end = 0;
  }
}
