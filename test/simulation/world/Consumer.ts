/**
 * Plays the consumer of a scenario: its pulls, and its handling of a part.
 */
import { type Cause, Effect, Exit, Option, Pull, Stream } from "effect";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { ConsumerBroke, type Journal, type Part } from "../Journal.ts";
import type { Scenario } from "../Scenario.ts";
import type { Tools } from "./Tools.ts";
import { pause } from "./VirtualTime.ts";

/** The stream of a scenario's surface. */
export type Surface =
  | { readonly kind: "run"; readonly stream: Stream.Stream<RunEvent<Part>, RunInterrupted> }
  | { readonly kind: "parts"; readonly stream: Stream.Stream<Part, RunInterrupted> };

/** Consumes a stream in the way of the scenario's consumer. */
export const consume = (scenario: Scenario, journal: Journal, surface: Surface, tools: Tools) => {
  const { kind, ms, n } = scenario.consumer;
  let count = 0;
  const step = (part: Part | undefined): Effect.Effect<void, ConsumerBroke> => {
    count += 1;
    if (kind === "failing" && count === n) return Effect.fail(new ConsumerBroke());
    const use = part === undefined ? Effect.void : tools.handed(part);
    return kind === "slow" ? Effect.andThen(use, pause(ms)) : use;
  };
  const withdrawn = new Set<number>();
  const reading = <A>(
    stream: Stream.Stream<A, RunInterrupted>,
    each: (it: A) => Effect.Effect<void, ConsumerBroke>,
  ) => {
    if (kind === "impatient") return impatient(stream, each, ms, n);
    return Stream.runForEach(kind === "take" ? Stream.take(stream, n) : stream, each);
  };
  const run =
    surface.kind === "parts"
      ? reading(surface.stream, (part) => {
          journal.add({ what: "got", part });
          return step(part);
        })
      : reading(surface.stream, (event) => {
          journal.add({ what: "seen", event });
          if (event._tag === "AttemptDiscarded") withdrawn.add(event.attempt);
          return step(event._tag === "Part" ? event.part : undefined);
        });
  return Effect.ensuring(
    run,
    Effect.suspend(() => tools.afterwards(withdrawn)),
  );
};

/** Pulls with a timeout and pulls again after it. After `patience` empty pulls it waits without a timeout. */
const impatient = <A>(
  stream: Stream.Stream<A, RunInterrupted>,
  each: (it: A) => Effect.Effect<void, ConsumerBroke>,
  ms: number,
  patience: number,
): Effect.Effect<void, RunInterrupted | ConsumerBroke> =>
  Effect.gen(function* () {
    const pull = yield* Stream.toPull(stream);
    for (let left = patience; ; ) {
      const limited = left > 0 ? Effect.timeoutOption(pull, ms) : Effect.asSome(pull);
      const exit = yield* Effect.exit(limited);
      if (Exit.isFailure(exit)) {
        if (Pull.isDoneCause(exit.cause)) return;
        return yield* Effect.failCause(exit.cause as Cause.Cause<RunInterrupted>);
      }
      if (Option.isNone(exit.value)) left -= 1;
      else for (const it of exit.value.value) yield* each(it);
    }
  }).pipe(Effect.scoped);
