/**
 * Keeps the output of a run for a reader that comes back: either all events or none.
 *
 * Once an event does not fit, the log is incomplete. From then on it only passes events to the present reader and keeps none (L11).
 */
import type { Observation } from "../../domain/Observation.ts";
import { envelopeBytes } from "../../runtime/attempt/Reveal.ts";
import type { AttachAfter } from "../../runtime/contract/AttachRefused.ts";
import type { PartEvent, RunEvent } from "../../runtime/contract/RunEvent.ts";

/** Maximum kept bytes of one run, as measured by `sizeOf` of the run. Equals `heldBytesMax`, which limits kept and held bytes together. */
export const keptBytesMax = 8 * 1024 * 1024;

/** Maximum kept bytes of all runs of a processor. */
export const keptBytesProcessMax = 256 * 1024 * 1024;

/** Counter of the bytes that a processor keeps. */
export interface KeptPool {
  used: number;
}

/** Holds the events that a run has sent. The position of an event is its number, counted from the first event of the run. */
export class KeptEvents<P> {
  readonly #pool: KeptPool;
  readonly #sizeOf: (part: P, observation: Observation) => number;
  /** Sizes of the part events that were created but have not left the run yet, in bytes. */
  readonly #weights = new Map<RunEvent<P>, number>();
  #events: Array<RunEvent<P>> = [];
  /** Position of the first event that is still kept. */
  #first = 0;
  #bytes = 0;
  #isWhole = true;

  /** @param sizeOf returns the weight of a part, in bytes */
  constructor(pool: KeptPool, sizeOf: (part: P, observation: Observation) => number) {
    this.#pool = pool;
    this.#sizeOf = sizeOf;
  }

  /** Size of the kept events, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True if every event that has left the run is still kept. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Position after the last event. */
  get end(): number {
    return this.#first + this.#events.length;
  }

  /** Measures the event of a part before it leaves the run. */
  weigh(event: PartEvent<P>, observation: Observation): void {
    if (this.#isWhole) this.#weights.set(event, this.#sizeOf(event.part, observation));
  }

  /** Adds events that leave the run. */
  add(events: ReadonlyArray<RunEvent<P>>): void {
    for (const event of events) {
      this.#events.push(event);
      if (!this.#isWhole) continue;
      const size = this.#weights.get(event) ?? envelopeBytes;
      this.#weights.delete(event);
      const fits = this.#bytes + size <= keptBytesMax && this.#pool.used + size <= keptBytesProcessMax;
      if (!fits) this.markIncomplete();
      else {
        this.#bytes += size;
        this.#pool.used += size;
      }
    }
  }

  /** Marks the log as incomplete. Events that the reader has not taken yet stay until it takes them. */
  markIncomplete(): void {
    this.#isWhole = false;
    this.#pool.used -= this.#bytes;
    this.#bytes = 0;
    this.#weights.clear();
  }

  /** Returns the events from a position on. */
  readFrom(position: number): ReadonlyArray<RunEvent<P>> {
    return this.#events.slice(Math.max(0, position - this.#first));
  }

  /** Discards the events before a position. */
  dropBefore(position: number): void {
    this.#events = this.#events.slice(Math.max(0, position - this.#first));
    this.#first = Math.max(this.#first, position);
  }

  /** Returns the position directly after the reader's last event; undefined if that event has not left the run. */
  positionAfter(after: AttachAfter): number | undefined {
    if ("parts" in after && after.parts === 0) return 0;
    let parts = 0;
    const at = this.#events.findIndex((event) => {
      if (event._tag === "Part") parts += 1;
      if ("parts" in after) return event._tag === "Part" && parts === after.parts;
      if (event._tag === "AttemptStarted") return event.attempt === after.attempt && after.ordinal === 0;
      return event._tag === "Part" && event.attempt === after.attempt && event.ordinal === after.ordinal;
    });
    return at === -1 ? undefined : this.#first + at + 1;
  }
}
