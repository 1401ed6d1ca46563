/**
 * Remembers which providers this process has had an answer from: a name that does not resolve is then the network's doing.
 */
import { providersMax } from "./Throttle.ts";

/** The providers, the latest ones: a caller may name as many as it likes (law L11). */
export class Reached {
  readonly #providers = new Set<string>();

  has(provider: string): boolean {
    return this.#providers.has(provider);
  }

  add(provider: string): void {
    if (this.#providers.has(provider)) return;
    this.#providers.add(provider);
    for (const oldest of this.#providers) {
      if (this.#providers.size > providersMax) this.#providers.delete(oldest);
      break;
    }
  }

  /** How many are remembered. */
  get size(): number {
    return this.#providers.size;
  }
}
