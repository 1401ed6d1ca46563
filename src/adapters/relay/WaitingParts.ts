/**
 * Stores the events of a response that have arrived and were not sent, in order.
 *
 * Usually there is only one, and the next to be sent is the first. A `Set` would rebuild its table every few events, because
 * deleted entries keep their place.
 */
import type { RelayPart } from "./RelayFrames.ts";

/** Maximum slots that are reused for later events. */
const placesMax = 64;

/** Events that have arrived and were not sent; at most as many as their run may hold. */
export class WaitingParts {
  #places: Array<RelayPart | undefined> = [];
  #first = 0;
  #end = 0;

  /** The events, oldest first. */
  get all(): ReadonlyArray<RelayPart> {
    return this.#places.slice(this.#first, this.#end).flatMap((part) => part ?? []);
  }

  /** Adds an event that has arrived. */
  add(part: RelayPart): void {
    this.#places[this.#end] = part;
    this.#end += 1;
  }

  /** Removes an event that was sent or never will be. */
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

  /** Removes all events. */
  clear(): void {
    this.#places = [];
    this.#first = 0;
    this.#end = 0;
  }
}
