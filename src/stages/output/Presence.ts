/**
 * Tracks the reader of a run: present, away or evicted.
 *
 * While the reader is away, arriving parts are held and do not count as shown (L4). The attempt keeps reading with its clocks running, and
 * later attempts start in the same state, so a break is decided on the parts that were really delivered. Once the reader returns, the held
 * parts are delivered as usual, after the same writes (L8).
 *
 * If the held parts exceed the limits of Reveal.ts, the run is `evicted`: the held and all later parts are discarded. These parts count as
 * decoded, never as shown. An evicted run continues until its response ends. If an attempt breaks, it is not retried, because the whole
 * response can no longer reach a reader. The run then ends as if the user had cancelled it, unless the terminal marker was seen.
 */
import type { ReaderListener, ReaderState } from "../../runtime/contract/Taps.ts";

/** The presence of one run's reader. Its embedder creates it and reports when the reader leaves and returns. */
export class Presence implements ReaderState {
  #isAway = false;
  #isEvicted = false;
  #listener: ReaderListener | undefined;
  readonly #keptBytes: () => number;
  readonly #whenEvicted: Array<() => void> = [];

  /** @param keptBytes bytes that the embedder keeps for a returning reader; they count towards the limits of held parts */
  constructor(keptBytes: () => number = () => 0) {
    this.#keptBytes = keptBytes;
  }

  /** Registers a listener that is called in the step in which the run is evicted. It must not throw. */
  whenEvicted(listener: () => void): void {
    this.#whenEvicted.push(listener);
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  get isEvicted(): boolean {
    return this.#isEvicted;
  }

  get keptBytes(): number {
    return this.#keptBytes();
  }

  markAway(): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#listener?.reader("left");
  }

  /** Marks the reader as present. Has no effect after eviction. */
  markPresent(): void {
    if (!this.#isAway || this.#isEvicted) return;
    this.#isAway = false;
    this.#listener?.reader("back");
  }

  setListener(listener: ReaderListener): void {
    this.#listener = listener;
  }

  clearListener(listener: ReaderListener): void {
    if (this.#listener !== listener) return;
    this.#listener = undefined;
    this.#whenEvicted.length = 0;
  }

  evict(): void {
    if (this.#isEvicted) return;
    this.#isEvicted = true;
    this.#listener?.reader("evicted");
    for (const listener of this.#whenEvicted.splice(0)) listener();
  }
}
