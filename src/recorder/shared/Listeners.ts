/**
 * Keeps who hears the words of one store in this process.
 */
import type { Word } from "./SharedFacts.ts";

/** Those who hear: at most one a part of the process and one a question that waits here, each of which leaves when it ends. */
export class Listeners {
  readonly #all = new Set<(word: Word) => void>();

  /** Hears every word from now on. Returns what ends it. */
  readonly on = (listener: (word: Word) => void): (() => void) => {
    // One that is added twice hears twice, and ends once.
    const own = (word: Word) => listener(word);
    this.#all.add(own);
    return () => void this.#all.delete(own);
  };

  /** Says a word to all of them. */
  say(word: Word): void {
    for (const listener of [...this.#all]) listener(word);
  }
}
