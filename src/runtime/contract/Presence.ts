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

/** A change of the reader: it left, it returned, or the parts held for it were evicted. */
export type ReaderWord = "left" | "back" | "evicted";

/** Notified synchronously of changes of the run's reader. The callback must not block or throw. */
export interface PresenceListener {
  readonly reader: (word: ReaderWord) => void;
}

/** The presence of one run's reader. Its embedder creates it and reports when the reader leaves and returns. */
export class Presence {
  #isAway = false;
  #isEvicted = false;
  #listener: PresenceListener | undefined;
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

  /** True if the run has no reader at the moment. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** True if output was discarded, so that no reader can receive the whole response any more. */
  get isEvicted(): boolean {
    return this.#isEvicted;
  }

  /** Bytes of output that the embedder keeps. */
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

  /** @internal Sets the listener of the run. */
  setListener(listener: PresenceListener): void {
    this.#listener = listener;
  }

  /** @internal Drops the listener of an ended run, because a presence outlives its run and must not keep it in memory (L11). */
  clearListener(listener: PresenceListener): void {
    if (this.#listener !== listener) return;
    this.#listener = undefined;
    this.#whenEvicted.length = 0;
  }

  /** @internal Marks the run as evicted because the held parts exceed their limits. */
  evict(): void {
    if (this.#isEvicted) return;
    this.#isEvicted = true;
    this.#listener?.reader("evicted");
    for (const listener of this.#whenEvicted.splice(0)) listener();
  }
}
