/**
 * Keeps the terminal marker of a response that is held whole until the protocol's last event has arrived.
 */
import type { Observation } from "../../domain/Observation.ts";

/** Terminal marker that arrived before the protocol's last event. */
export class HeldMarker {
  #marker: { readonly finish: string | undefined; readonly isRequired: boolean } | undefined;

  /** True if the marker has arrived and the protocol's last event has not. */
  get isAwaitingLast(): boolean {
    return this.#marker !== undefined;
  }

  /** True if the marker is waiting and clients of the protocol need the last event. */
  get isLastRequired(): boolean {
    return this.#marker?.isRequired === true;
  }

  /** Forgets the marker. Returns true if there was one. */
  take(): boolean {
    const had = this.#marker !== undefined;
    this.#marker = undefined;
    return had;
  }

  /**
   * Returns the observation to count.
   *
   * @param holdsAll true if the whole response is held, so that its marker waits for the protocol's last event
   * @param onHeld called when a marker starts to wait
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
