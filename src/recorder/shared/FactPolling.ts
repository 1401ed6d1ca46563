/**
 * Reads all facts of a kind, at once and after each notification.
 */
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import type * as Scope from "effect/Scope";
import { OutageLog, type OutageWords } from "./OutageLog.ts";
import type { Fact, SharedFacts, ToldKind } from "./SharedFacts.ts";

/**
 * Reads the facts while the scope is open. If the store cannot be read now, the next notification tries again.
 *
 * @param found called with all facts that have not expired, including this process's own. It must not throw
 */
export const make = Effect.fnUntraced(function* (
  facts: SharedFacts,
  kind: ToldKind,
  words: OutageWords,
  onFacts: (all: ReadonlyArray<Fact>) => void,
): Effect.fn.Return<void, never, Scope.Scope> {
  const outage = new OutageLog(words);
  const look = Effect.map(facts.all(kind), onFacts).pipe(
    Effect.andThen(outage.recordSuccess),
    Effect.catch(({ message }) => outage.recordFailure(message)),
  );
  // A notification that arrives during a read causes another read.
  const bells = yield* Queue.sliding<void>(1);
  const ring = () => void Queue.offerUnsafe(bells, undefined);
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      facts.on((word) => {
        if (word._tag === "Look" || (word._tag === "Put" && word.kind === kind)) ring();
      }),
    ),
    (ends) => Effect.sync(ends),
  );
  ring();
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(bells), look)));
});
