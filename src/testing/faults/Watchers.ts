/** Lets effects wait, without sleeping, until a function over changing state returns a value. */
import { Effect } from "effect";

/** The effects that wait for one state to change. */
export class Watchers {
  readonly #watchers = new Set<() => void>();

  /** Makes every waiting effect call its function again, because the state has changed. */
  wake(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /**
   * Waits until `look` returns a value.
   *
   * @param look reads the state; undefined while there is no value
   */
  waitUntil<A>(look: () => { readonly value: A } | undefined): Effect.Effect<A> {
    return Effect.callback<A>((resume) => {
      const watcher = () => {
        const found = look();
        if (found === undefined) return;
        this.#watchers.delete(watcher);
        resume(Effect.succeed(found.value));
      };
      this.#watchers.add(watcher);
      watcher();
      return Effect.sync(() => {
        this.#watchers.delete(watcher);
      });
    });
  }
}
