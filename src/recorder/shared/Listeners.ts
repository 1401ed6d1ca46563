/**
 * Holds the listeners of this process for the words of one store.
 */
import type { Word } from "./SharedFacts.ts";

/** At most one listener per part of the process and per waiting question. Each is removed at its end. */
export class Listeners {
  readonly #all = new Set<(word: Word) => void>();

  /** Adds a listener. Returns a function that removes it. */
  readonly on = (listener: (word: Word) => void): (() => void) => {
    // Wrapped, so that a listener added twice is called twice and each removal affects one.
    const own = (word: Word) => listener(word);
    this.#all.add(own);
    return () => void this.#all.delete(own);
  };

  say(word: Word): void {
    for (const listener of [...this.#all]) listener(word);
  }
}
