/** Counts the copies that are made of the services of a program. */
import { Context, Effect } from "effect";

/** Of the program, and read by nothing. */
const Marked = Context.Service<"Marked", string>("Marked");

/** Does something, and gives how often the services were copied meanwhile: a context is a map, and a copy of it is a map of that map. */
export const copiedServices = <E, R>(done: Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const Plain = globalThis.Map;
    let copies = 0;
    globalThis.Map = class<K, V> extends Plain<K, V> {
      constructor(given?: Iterable<readonly [K, V]> | null) {
        super(given);
        // A context's keys are names of services; what `K` is otherwise is not looked for.
        if (given instanceof Plain && this.has(Marked.key as K)) copies += 1;
      }
    };
    const restored = Effect.sync(() => {
      globalThis.Map = Plain;
    });
    return Effect.map(Effect.ensuring(done, restored), () => copies);
  }).pipe(Effect.provideService(Marked, ""));
