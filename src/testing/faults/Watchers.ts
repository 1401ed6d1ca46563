/**
 * Lets effects wait, without sleeping, until a look at changing state gives a value.
 */
import { Effect } from "effect";

/** The looks that wait for a change of one state. */
export class Watchers {
  readonly #watchers = new Set<() => void>();

  /** The state has changed: every waiting look is taken again. */
  wake(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /**
   * Waits until a look gives a value.
   *
   * @param look at the state; undefined as long as there is no value
   */
  until<A>(look: () => { readonly value: A } | undefined): Effect.Effect<A> {
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
