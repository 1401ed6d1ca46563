/**
 * Says whether somebody reads a run.
 *
 * While the reader is away nothing is handed over: what arrives is held, not shown (L4). The attempt reads on, its clocks too, and
 * later attempts of the run start in the same state, so that a break is decided on what was really handed over. When the reader
 * comes back, what is held passes on exactly as it would have, behind the same writes (L8).
 *
 * What does not fit into the bounds of Reveal.ts makes the run `evicted`: what was held is thrown away, and so is all that still
 * comes. It counts as decoded and never as shown. Such a run goes on to its own end; one that breaks is not asked for again, because no
 * reader could have the response: it ends as its user's cancel, unless the terminal marker was seen.
 */

/** The reader went away, or is there again; or what is held for it does not fit. */
export type ReaderWord = "left" | "back" | "evicted";

/** Hears of the reader of a run, in the same step. Nothing of it may block or throw. */
export interface PresenceListener {
  readonly reader: (word: ReaderWord) => void;
}

/** The presence of one run's reader. Its embedder makes it and says when the reader leaves and comes back. */
export class Presence {
  #isAway = false;
  #isEvicted = false;
  #listener: PresenceListener | undefined;
  readonly #keptBytes: () => number;
  readonly #whenEvicted: Array<() => void> = [];

  /** @param keptBytes what the embedder keeps of the run for a reader that comes back, in bytes: it counts with what is held */
  constructor(keptBytes: () => number = () => 0) {
    this.#keptBytes = keptBytes;
  }

  /** Calls the listener in the step in which the run is evicted; it must not throw. */
  whenEvicted(listener: () => void): void {
    this.#whenEvicted.push(listener);
  }

  /** Nobody reads the run now. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Something was thrown away: no reader can have the whole response any more. */
  get isEvicted(): boolean {
    return this.#isEvicted;
  }

  /** What the embedder keeps of the run, in bytes. */
  get keptBytes(): number {
    return this.#keptBytes();
  }

  /** The reader goes away. */
  leaves(): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#listener?.reader("left");
  }

  /** A reader is there again. Nothing comes of it once the run is evicted. */
  returns(): void {
    if (!this.#isAway || this.#isEvicted) return;
    this.#isAway = false;
    this.#listener?.reader("back");
  }

  /** @internal The run hears of its reader from now on. */
  tells(listener: PresenceListener): void {
    this.#listener = listener;
  }

  /** @internal The run has ended and hears of its reader no more: a presence outlives it, and must not keep it in memory (L11). */
  forgets(listener: PresenceListener): void {
    if (this.#listener !== listener) return;
    this.#listener = undefined;
    this.#whenEvicted.length = 0;
  }

  /** @internal What is held does not fit. */
  evict(): void {
    if (this.#isEvicted) return;
    this.#isEvicted = true;
    this.#listener?.reader("evicted");
    for (const listener of this.#whenEvicted.splice(0)) listener();
  }
}
