/**
 * Keeps what has left a run for a reader that comes back: all of it, or nothing.
 *
 * What does not fit makes it incomplete: from then on it only passes events on to the reader that is there, and keeps none (L11).
 */
import type { Observation } from "../../domain/Observation.ts";
import { envelopeBytes } from "../attempt/Reveal.ts";
import type { AttachAfter } from "../contract/AttachRefused.ts";
import type { PartEvent, RunEvent } from "../contract/RunEvent.ts";

/** Most that is kept of one run, in bytes as its `sizeOf` tells them: `heldBytesMax`, which holds for kept and held together. */
export const keptBytesMax = 8 * 1024 * 1024;

/** Most that is kept of all runs of a processor, in bytes. */
export const keptBytesProcessMax = 256 * 1024 * 1024;

/** The processor's share of kept bytes. */
export interface KeptPool {
  used: number;
}

/** The events of one run that have left it. A position counts them from the first one on. */
export class KeptEvents<P> {
  readonly #pool: KeptPool;
  readonly #sizeOf: (part: P, observation: Observation) => number;
  /** Weights of events that were made and have not left. */
  readonly #weights = new Map<RunEvent<P>, number>();
  #events: Array<RunEvent<P>> = [];
  /** The position of the first event that is here. */
  #first = 0;
  #bytes = 0;
  #isWhole = true;

  /** @param sizeOf weighs a part, in bytes */
  constructor(pool: KeptPool, sizeOf: (part: P, observation: Observation) => number) {
    this.#pool = pool;
    this.#sizeOf = sizeOf;
  }

  /** What is kept, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** All that has left the run is here. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** The position behind the last event. */
  get end(): number {
    return this.#first + this.#events.length;
  }

  /** An event of a part was made. */
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
      if (!fits) this.breaks();
      else {
        this.#bytes += size;
        this.#pool.used += size;
      }
    }
  }

  /** It is not whole any more. What a reader has still to take stays until it has taken it. */
  breaks(): void {
    this.#isWhole = false;
    this.#pool.used -= this.#bytes;
    this.#bytes = 0;
    this.#weights.clear();
  }

  /** The events from a position on. */
  from(position: number): ReadonlyArray<RunEvent<P>> {
    return this.#events.slice(Math.max(0, position - this.#first));
  }

  /** Throws away what stands before a position. */
  dropBefore(position: number): void {
    this.#events = this.#events.slice(Math.max(0, position - this.#first));
    this.#first = Math.max(this.#first, position);
  }

  /** The position directly behind what a reader has; undefined where that has not left the run. */
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
