/**
 * Keeps the terminal marker of a response that is held whole, until the protocol's last event has come behind it.
 */
import type { Observation } from "../../domain/Observation.ts";

/** A marker that has come before the protocol's last event. */
export class HeldMarker {
  #marker: { readonly finish: string | undefined; readonly isRequired: boolean } | undefined;

  /** A marker has come, and the protocol's last event has not. */
  get awaitsLast(): boolean {
    return this.#marker !== undefined;
  }

  /** Such a marker has come, and the protocol's clients need its last event. */
  get requiresLast(): boolean {
    return this.#marker?.isRequired === true;
  }

  /** Forgets the marker. Returns whether there was one. */
  take(): boolean {
    const had = this.#marker !== undefined;
    this.#marker = undefined;
    return had;
  }

  /**
   * The observation as it counts.
   *
   * @param holdsAll the whole response is held: its marker waits for the protocol's last event
   * @param onHeld called where a marker begins to wait
   */
  due(observation: Observation, holdsAll: boolean, onHeld: () => void): Observation {
    const { closes, failure, finish, terminal } = observation;
    const comes = closes === "later" || closes === "required";
    if (comes && terminal && failure === undefined && holdsAll) {
      this.#marker = { finish, isRequired: closes === "required" };
      onHeld();
      return { ...observation, terminal: false };
    }
    if (closes !== "now" || this.#marker === undefined) return observation;
    const marker = this.#marker;
    this.#marker = undefined;
    return { ...observation, terminal: true, ...(marker.finish === undefined ? {} : { finish: marker.finish }) };
  }
}
