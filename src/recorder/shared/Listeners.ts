/** Holds the listeners of this process for the notifications (`Word`) of one store. */
import type { Word } from "./SharedFacts.ts";

/**
 * The listeners: at most one per component of the process and per waiting question. Each is removed when the component or the wait that
 * added it ends.
 */
export class Listeners {
  readonly #all = new Set<(word: Word) => void>();

  /** Adds a listener. Returns a function that removes it. */
  readonly on = (listener: (word: Word) => void): (() => void) => {
    // Wrapped in a new function, so that a listener added twice is called twice, and each removal affects only one registration.
    const own = (word: Word) => listener(word);
    this.#all.add(own);
    return () => void this.#all.delete(own);
  };

  notify(word: Word): void {
    for (const listener of [...this.#all]) listener(word);
  }
}
