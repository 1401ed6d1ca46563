/**
 * Plays readers of a lingering run: each takes some events, and goes away as a consumer does whose fiber is interrupted.
 */
import { Effect, Exit, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { AttachAfter, AttachRefused } from "../../../src/runtime/contract/AttachRefused.ts";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../../runtime/Scripted.ts";

type Event = RunEvent<S.ScriptedPart>;
type Events<R> = Stream.Stream<Event, RunInterrupted | AttachRefused, R>;

/** The events that a reader has had so far. */
export interface Reading {
  readonly events: ReadonlyArray<Event>;
  /** Undefined while it reads. */
  readonly exit: () => Exit.Exit<void, RunInterrupted | AttachRefused> | undefined;
  /** Why its stream has failed; `done` at a clean end, `left` where it was interrupted. */
  readonly end: () => string | undefined;
  /** It goes away: its fiber is interrupted. */
  readonly leave: Effect.Effect<void>;
}

/**
 * Begins to read in the background.
 *
 * @param take how many events it takes: in the middle of the last one it goes away
 */
export const reads = <R>(stream: Events<R>, take = Number.POSITIVE_INFINITY): Effect.Effect<Reading, never, R> =>
  Effect.gen(function* () {
    const events: Array<Event> = [];
    const each = Stream.runForEach(stream, (event) => {
      events.push(event);
      return events.length === take ? Effect.interrupt : Effect.void;
    });
    const fiber = yield* Effect.forkDetach(each, { startImmediately: true });
    return {
      events,
      exit: () => fiber.pollUnsafe(),
      end: () => endOf(fiber.pollUnsafe()),
      leave: Fiber.interrupt(fiber),
    };
  });

const endOf = (exit: Exit.Exit<void, RunInterrupted | AttachRefused> | undefined): string | undefined => {
  if (exit === undefined) return undefined;
  if (Exit.isSuccess(exit)) return "done";
  const error = S.errorOf(exit);
  return error === undefined ? "left" : `${error._tag} ${error.reason}`;
};

/** The last part that a reader has had, for the next one; undefined before the first. */
export const after = (events: ReadonlyArray<Event>): AttachAfter | undefined => {
  const last = events.findLast((event) => event._tag === "Part" || event._tag === "AttemptStarted");
  if (last?._tag === "Part") return { attempt: last.attempt, ordinal: last.ordinal };
  return last?._tag === "AttemptStarted" ? { attempt: last.attempt, ordinal: 0 } : undefined;
};

/** The parts of events, by attempt and ordinal. */
export const parts = (events: ReadonlyArray<Event>): ReadonlyArray<string> =>
  events.flatMap((event) => (event._tag === "Part" ? [`${event.attempt}.${event.ordinal} ${event.part.name}`] : []));

/** The parts that a caller that can discard has in the end: those that were not withdrawn. */
export const kept = (events: ReadonlyArray<Event>): ReadonlyArray<string> => {
  let parts: ReadonlyArray<{ attempt: number; ordinal: number; name: string }> = [];
  for (const event of events) {
    if (event._tag === "Part")
      parts = [...parts, { attempt: event.attempt, ordinal: event.ordinal, name: event.part.name }];
    if (event._tag === "AttemptDiscarded")
      parts = parts.filter((it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through);
  }
  return parts.map(({ name }) => name);
};

/** The lines of events, as a person reads them. */
export const lines = (events: ReadonlyArray<Event>): ReadonlyArray<string> => events.map(S.line);

/** Lets what happens at once happen. */
export const settled: Effect.Effect<void> = Effect.gen(function* () {
  for (let step = 0; step < 8; step += 1) yield* TestClock.adjust(0);
});

/** Lets time pass. */
export const passed = (ms: number): Effect.Effect<void> =>
  Effect.andThen(Effect.andThen(settled, TestClock.adjust(ms)), settled);

/** The events of the run `r` for a reader that attaches. */
export const attached = (at?: ReturnType<typeof after>) =>
  Stream.unwrap(
    Effect.map(StreamProcessor, (it) => it.attach<S.ScriptedPart>("r", at === undefined ? {} : { after: at })),
  );
