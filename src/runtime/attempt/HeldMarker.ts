/**
 * Keeps the terminal marker of a response that is held whole, until the protocol's last event has come behind it.
 */
import type { Observation } from "../../domain/Observation.ts";

/** A marker that has come before the protocol's last event. */
export class HeldMarker {
  #marker: { readonly finish: string | undefined } | undefined;

  /** A marker has come, and the protocol's last event has not. */
  get awaitsLast(): boolean {
    return this.#marker !== undefined;
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
    if (closes === "later" && terminal && failure === undefined && holdsAll) {
      this.#marker = { finish };
      onHeld();
      return { ...observation, terminal: false };
    }
    if (closes !== "now" || this.#marker === undefined) return observation;
    const marker = this.#marker;
    this.#marker = undefined;
    return { ...observation, terminal: true, ...(marker.finish === undefined ? {} : { finish: marker.finish }) };
  }
}
