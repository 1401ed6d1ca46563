/**
 * Waits for answers that arrive through the record, from this process or from another one.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { Choice } from "../../domain/Decision.ts";
import { toMs } from "../../domain/Durations.ts";
import { toBounded } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { expiryChoice, normalizeExpiry, type QuestionTerms } from "../../recorder/Question.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { outageLogs } from "../../recorder/shared/OutageLog.ts";
import { lookMs } from "../../recorder/shared/SharedFacts.ts";
import { suspendLateMs } from "../contract/Clocks.ts";

/** Default time that a stream waits for an answer before it is parked, in milliseconds. The question itself stays open. */
export const parkAfterMsDefault = 600_000;

/** Default interval at which the record is polled for answers from other processes, in milliseconds. */
export const pollMsDefault = 250;

/** Options of `UserDecisions.layerDurable`. */
export interface DurableOptions extends QuestionTerms {
  /**
   * Maximum time that a stream waits for its answer before it is parked, as milliseconds or a duration. Default ten minutes; `Infinity`
   * waits forever.
   */
  readonly parkAfterMs?: Duration.Input;
  /** Interval at which the record is polled for answers from other processes, as milliseconds or a duration. Default 250 ms. */
  readonly pollMs?: Duration.Input;
}

/** The fields of a question that are needed to wait for its answer. */
interface OpenQuestion {
  readonly run_id: string;
  readonly revision: number;
  readonly choices: ReadonlyArray<Choice>;
  readonly default_choice: Choice;
  readonly expires_at?: number;
}

/** Makes the `ask` function and the terms of `UserDecisions.layerDurable`. */
export const make = (options: DurableOptions = {}) =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const clock = yield* Clock.Clock;
    yield* listenForAnswers(recorder);
    const { defaults } = options;
    const expiryMs = normalizeExpiry(options.expiryMs);
    const parkAfterMs = waitOf(options.parkAfterMs, parkAfterMsDefault);
    const askMs = waitOf(options.pollMs, pollMsDefault);
    // If the store announces every answer, polling only has to find missed announcements.
    const pollMs = () => (recorder.shared?.hasNotifications() === true ? Math.max(askMs, lookMs) : askMs);
    const now = () => clock.currentTimeMillisUnsafe();
    const monotonic = () => monotonicMs(clock);
    return {
      ask: (question: OpenQuestion) => awaitAnswer(recorder, question, { now, monotonic, pollMs, parkAfterMs }),
      terms: {
        ...(expiryMs === undefined ? {} : { expiryMs }),
        ...(defaults === undefined ? {} : { defaults }),
      },
    };
  });

/** A negative or invalid wait falls back to the default. With the given value a timer would fire at once, and the loop would spin. */
const waitOf = (given: Duration.Input | undefined, byDefault: number): number => {
  const ms = given === undefined ? byDefault : toMs(given);
  return ms >= 0 ? ms : byDefault;
};

/**
 * Wakes the streams of this process that wait for an answer of this run, once it is on record.
 *
 * @param recorder the store that holds the answer
 */
export const notifyAnswered = (recorder: RunRecorder["Service"], runId: string): Effect.Effect<void> =>
  Effect.sync(() => notifyBells(waiting.get(toBounded(recorder))?.get(runId)));

/**
 * Wakes the streams that wait on these bells. Copies the set first: a woken stream may register its next bell at once, and that bell must
 * not ring for this answer.
 */
const notifyBells = (bells: Iterable<Bell> = []): void => {
  for (const bell of [...bells]) Deferred.doneUnsafe(bell, Effect.void);
};

/**
 * While the scope is open, wakes the streams whose answers arrive from other processes. If an announcement may have been missed, wakes all
 * waiting streams.
 */
const listenForAnswers = (recorder: RunRecorder["Service"]): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() =>
        recorder.shared?.on((word) => {
          const runs = waiting.get(recorder);
          if (word._tag === "Answered") notifyBells(runs?.get(word.run_id));
          else if (word._tag === "Look") notifyBells([...(runs?.values() ?? [])].flatMap((bells) => [...bells]));
        }),
      ),
      (ends) => Effect.sync(() => ends?.()),
    ),
  );

type Bell = Deferred.Deferred<void>;

/** Waiting streams of this process by store and run. Each has one bell, removed when its wait ends. */
const waiting = new WeakMap<RunRecorder["Service"], Map<string, Set<Bell>>>();

interface Wait {
  /** Wall clock, in milliseconds since the epoch. */
  readonly now: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
  readonly pollMs: () => number;
  readonly parkAfterMs: number;
}

const awaitAnswer = (
  recorder: RunRecorder["Service"],
  question: OpenQuestion,
  { monotonic, now, parkAfterMs, pollMs }: Wait,
): Effect.Effect<Choice | "parked"> =>
  Effect.gen(function* () {
    let left = parkAfterMs;
    while (true) {
      const from = monotonic();
      // The bell is registered before the record is read, so that it rings for an answer that arrives in between.
      const bell = addBell(recorder, question.run_id);
      const rest = Effect.gen(function* () {
        const found = yield* answerOf(recorder, question, now());
        if (found !== undefined) return found;
        if (left <= 0) return "parked" as const;
        const toExpiry = (question.expires_at ?? Number.POSITIVE_INFINITY) - now();
        const toPoll = pollMs();
        const ms = Math.max(1, Math.min(toPoll, left, toExpiry > 0 ? toExpiry : toPoll));
        yield* Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(bell));
        // A wait that took much longer than planned spans a suspension, in which no person could answer.
        const took = monotonic() - from;
        left -= took > ms + suspendLateMs ? ms : took;
        return undefined;
      });
      const found = yield* Effect.ensuring(
        rest,
        Effect.sync(() => removeBell(recorder, question.run_id, bell)),
      );
      if (found !== undefined) return found;
    }
  });

/** Returns the answer on record, or the default once the question has expired; undefined while the question is open. */
const answerOf = (
  recorder: RunRecorder["Service"],
  question: OpenQuestion,
  now: number,
): Effect.Effect<Choice | "parked" | undefined> =>
  Effect.gen(function* () {
    const { expires_at, revision, run_id } = question;
    const given = yield* onRecord(recorder, question);
    if (given !== undefined || expires_at === undefined || now < expires_at) return given;
    const choice = expiryChoice(question);
    return yield* recorder.answer({ run_id, revision, choice, by: "expiry" }).pipe(
      Effect.as<Choice | "parked" | undefined>(choice),
      Effect.catchTags({
        // The first answer on record counts.
        AnswerRefused: ({ reason }) =>
          reason === "already_answered" ? onRecord(recorder, question) : Effect.succeed(refusedAs[reason]),
        RecorderError: (error) => Effect.as(recordReadFailure(recorder, error), undefined),
      }),
    );
  });

/**
 * Result of the wait if the store refuses to record the expiry, by the reason of the refusal. A question that is not on record cannot be
 * answered, so the wait ends. If the facts have grown, the run asks a new question, which interrupts this wait.
 */
const refusedAs = {
  unknown_run: "stop",
  no_question: "stop",
  not_offered: "stop",
  run_ended: "stop",
  stale_revision: "parked",
  already_answered: undefined,
  expired: undefined,
  not_expired: undefined,
  facts_grown: undefined,
} as const;

const onRecord = (
  recorder: RunRecorder["Service"],
  { revision, run_id }: OpenQuestion,
): Effect.Effect<Choice | "parked" | undefined> =>
  recorder.run(run_id).pipe(
    Effect.tap(outageOf(recorder).recordSuccess),
    Effect.map((record) => {
      const newest = record?.questions.at(-1);
      // A newer question means that another process has asked it and now owns the run.
      if (newest !== undefined && newest.revision > revision) return "parked" as const;
      return record?.questions.find((it) => it.revision === revision)?.answer;
    }),
    Effect.catch((error) => Effect.as(recordReadFailure(recorder, error), undefined)),
  );

/** Logs a failed read, which the next poll repeats. All questions that wait here share one log message. */
const recordReadFailure = (recorder: RunRecorder["Service"], { message, reason }: RecorderError): Effect.Effect<void> =>
  outageOf(recorder).recordFailure(message === "" ? reason : message);

const outageOf = outageLogs({
  away: "cannot look up answers to questions",
  back: "looking up answers to questions again",
});

const addBell = (recorder: RunRecorder["Service"], runId: string): Bell => {
  const bell: Bell = Deferred.makeUnsafe<void>();
  const runs = waiting.get(recorder) ?? new Map<string, Set<Bell>>();
  waiting.set(recorder, runs);
  runs.set(runId, (runs.get(runId) ?? new Set<Bell>()).add(bell));
  return bell;
};

const removeBell = (recorder: RunRecorder["Service"], runId: string, bell: Bell): void => {
  const runs = waiting.get(recorder);
  const bells = runs?.get(runId);
  bells?.delete(bell);
  if (bells?.size === 0) runs?.delete(runId);
};
