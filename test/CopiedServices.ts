/** Counts the copies that are made of the services of a program. */
import { Context, Effect } from "effect";

/** A service that no program reads. A map that contains its key is a copy of the context. */
const Marked = Context.Service<"Marked", string>("Marked");

/** Runs an effect and counts how often the context's map was copied meanwhile. */
export const copiedServices = <E, R>(done: Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const Plain = globalThis.Map;
    let copies = 0;
    globalThis.Map = class<K, V> extends Plain<K, V> {
      constructor(given?: Iterable<readonly [K, V]> | null) {
        super(given);
        // A context's keys are strings; a map with other keys cannot contain this one.
        if (given instanceof Plain && this.has(Marked.key as K)) copies += 1;
      }
    };
    const restored = Effect.sync(() => {
      globalThis.Map = Plain;
    });
    return Effect.map(Effect.ensuring(done, restored), () => copies);
  }).pipe(Effect.provideService(Marked, ""));
