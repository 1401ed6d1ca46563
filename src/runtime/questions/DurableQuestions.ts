/**
 * Waits for answers that are given anywhere: in this process, or in another one that writes to the same record.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { Choice } from "../../domain/Decision.ts";
import { bounded } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { expiryChoice, expiryOf, type QuestionTerms } from "../../recorder/Question.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { outageLogs } from "../../recorder/shared/OutageLog.ts";
import { lookMs } from "../../recorder/shared/SharedFacts.ts";
import { suspendLateMs } from "../contract/Clocks.ts";

/** How long a stream stays open over a question by default, in milliseconds; the question itself stays open. */
export const parkAfterMsDefault = 600_000;

/** How often the record is read for the answer of another process by default, in milliseconds. */
export const pollMsDefault = 250;

/** What `UserDecisions.layerDurable` takes. */
export interface DurableOptions extends QuestionTerms {
  /** How long a stream waits for its answer before it is parked, in milliseconds; `Infinity` waits for ever. */
  readonly parkAfterMs?: number;
  /** How often the record is read for the answer of another process, in milliseconds. */
  readonly pollMs?: number;
}

/** What has to be known of a question to wait for its answer. */
interface OpenQuestion {
  readonly run_id: string;
  readonly revision: number;
  readonly choices: ReadonlyArray<Choice>;
  readonly default_choice: Choice;
  readonly expires_at?: number;
}

/** The answers of `UserDecisions.layerDurable`, and their terms. */
export const make = (options: DurableOptions = {}) =>
  Effect.gen(function* () {
    const recorder = bounded(yield* RunRecorder);
    const clock = yield* Clock.Clock;
    yield* hearing(recorder);
    const { defaults } = options;
    const expiryMs = expiryOf(options.expiryMs);
    const parkAfterMs = waitOf(options.parkAfterMs, parkAfterMsDefault);
    const askMs = waitOf(options.pollMs, pollMsDefault);
    // Where every answer is told of, the record is read for those that were missed.
    const pollMs = () => (recorder.shared?.hears() === true ? Math.max(askMs, lookMs) : askMs);
    const now = () => clock.currentTimeMillisUnsafe();
    const monotonic = () => monotonicMs(clock);
    return {
      ask: (question: OpenQuestion) => waited(recorder, question, { now, monotonic, pollMs, parkAfterMs }),
      terms: {
        ...(expiryMs === undefined ? {} : { expiryMs }),
        ...(defaults === undefined ? {} : { defaults }),
      },
    };
  });

/** A wait that is no number, or is below 0, is the default one: as a timer it would not wait, and its loop would spin. */
const waitOf = (given: number | undefined, byDefault: number): number =>
  given !== undefined && given >= 0 ? given : byDefault;

/**
 * Wakes the streams of this process that wait for an answer of this run: it is on record.
 *
 * @param recorder the store that holds the answer
 */
export const answeredHere = (recorder: RunRecorder["Service"], runId: string): Effect.Effect<void> =>
  Effect.sync(() => ring(waiting.get(bounded(recorder))?.get(runId)));

const ring = (bells: ReadonlySet<Bell> = new Set()): void => {
  for (const bell of bells) Deferred.doneUnsafe(bell, Effect.void);
};

/** Wakes the streams of this process for the answers of others, while the scope lives; and all of them where one may have been missed. */
const hearing = (recorder: RunRecorder["Service"]): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() =>
        recorder.shared?.on((word) => {
          const runs = waiting.get(recorder);
          if (word._tag === "Answered") ring(runs?.get(word.run_id));
          else if (word._tag === "Look") for (const bells of runs?.values() ?? []) ring(bells);
        }),
      ),
      (ends) => Effect.sync(() => ends?.()),
    ),
  );

type Bell = Deferred.Deferred<void>;

/** The waits of this process, by store and run: one bell for each, taken down when its wait is over. */
const waiting = new WeakMap<RunRecorder["Service"], Map<string, Set<Bell>>>();

interface Wait {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds that no setting of the wall clock changes. */
  readonly monotonic: () => number;
  readonly pollMs: () => number;
  readonly parkAfterMs: number;
}

const waited = (
  recorder: RunRecorder["Service"],
  question: OpenQuestion,
  { monotonic, now, parkAfterMs, pollMs }: Wait,
): Effect.Effect<Choice | "parked"> =>
  Effect.gen(function* () {
    let left = parkAfterMs;
    while (true) {
      const from = monotonic();
      // The bell hangs before the record is read, so that it rings for an answer that comes in between.
      const bell = hang(recorder, question.run_id);
      const rest = Effect.gen(function* () {
        const found = yield* answerOf(recorder, question, now());
        if (found !== undefined) return found;
        if (left <= 0) return "parked" as const;
        const toExpiry = (question.expires_at ?? Number.POSITIVE_INFINITY) - now();
        const toPoll = pollMs();
        const ms = Math.max(1, Math.min(toPoll, left, toExpiry > 0 ? toExpiry : toPoll));
        yield* Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(bell));
        // A wait that took much longer than it should lies over a suspension: no person had that time.
        const took = monotonic() - from;
        left -= took > ms + suspendLateMs ? ms : took;
        return undefined;
      });
      const found = yield* Effect.ensuring(
        rest,
        Effect.sync(() => takeDown(recorder, question.run_id, bell)),
      );
      if (found !== undefined) return found;
    }
  });

/** The answer on record, or the default once the question has expired; undefined while it is open. */
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
        // An answer that came first counts.
        AnswerRefused: ({ reason }) =>
          reason === "already_answered" ? onRecord(recorder, question) : Effect.succeed(refusedAs[reason]),
        RecorderError: (error) => Effect.as(notRead(recorder, error), undefined),
      }),
    );
  });

/**
 * What an expiry that is refused means. A question that is not on record can get no answer, so the wait ends. Where facts have
 * grown, the run asks anew and interrupts this wait.
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
    Effect.tap(outageOf(recorder).worked),
    Effect.map((record) => {
      const newest = record?.questions.at(-1);
      // The process that has asked a newer question drives the run now.
      if (newest !== undefined && newest.revision > revision) return "parked" as const;
      return record?.questions.find((it) => it.revision === revision)?.answer;
    }),
    Effect.catch((error) => Effect.as(notRead(recorder, error), undefined)),
  );

/** A store that cannot be read now is asked again with the next look. All questions that wait here say it once. */
const notRead = (recorder: RunRecorder["Service"], { message, reason }: RecorderError): Effect.Effect<void> =>
  outageOf(recorder).failed(message === "" ? reason : message);

const outageOf = outageLogs({
  away: "answers to questions cannot be looked up",
  back: "answers to questions are looked up again",
});

const hang = (recorder: RunRecorder["Service"], runId: string): Bell => {
  const bell: Bell = Deferred.makeUnsafe<void>();
  const runs = waiting.get(recorder) ?? new Map<string, Set<Bell>>();
  waiting.set(recorder, runs);
  runs.set(runId, (runs.get(runId) ?? new Set<Bell>()).add(bell));
  return bell;
};

const takeDown = (recorder: RunRecorder["Service"], runId: string, bell: Bell): void => {
  const runs = waiting.get(recorder);
  const bells = runs?.get(runId);
  bells?.delete(bell);
  if (bells?.size === 0) runs?.delete(runId);
};
