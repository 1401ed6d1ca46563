import { Effect, type Scope } from "effect";

/** Sets an environment variable until the scope ends. */
export const inVariable = (name: string, value: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        const before = process.env[name];
        process.env[name] = value;
        return before;
      }),
      (before) =>
        Effect.sync(() => {
          if (before === undefined) delete process.env[name];
          else process.env[name] = before;
        }),
    ),
  );
