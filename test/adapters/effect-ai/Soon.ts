/**
 * Advances virtual time automatically, keeps waits short, and summarises histories.
 */
import { Effect, Fiber } from "effect";
import type { Prompt } from "effect/ai";
import { TestClock } from "effect/testing";

/** Runs with virtual time that advances by a quarter of a second with each turn of the event loop. */
export const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));
    for (let at = 0; at < 400 && fiber.pollUnsafe() === undefined; at += 1) {
      yield* turn;
      yield* TestClock.adjust("250 millis");
    }
    return yield* Fiber.join(fiber);
  });

/** The messages of a history in short, with their contents in order. */
export const lines = (prompt: Prompt.Prompt): ReadonlyArray<string> =>
  prompt.content.flatMap((message) =>
    message.role === "system"
      ? ["system"]
      : message.content.map((part) => {
          if (part.type === "text" || part.type === "reasoning") return `${message.role} ${part.type} ${part.text}`;
          if (part.type === "tool-call") return `${message.role} call ${part.id}`;
          return part.type === "tool-result" ? `${message.role} result ${part.id} ${part.isFailure}` : part.type;
        }),
  );

/** Small numbers, so that waits are short, and never the same twice, so that runs have ids of their own. */
export const shortWaits = () => {
  let state = 16_807;
  const nextDoubleUnsafe = () => {
    state = (state * 16_807) % 2_147_483_647;
    return (state / 2_147_483_647) * 0.1;
  };
  return { nextDoubleUnsafe, nextIntUnsafe: () => Math.floor(nextDoubleUnsafe() * 2 ** 32) };
};
