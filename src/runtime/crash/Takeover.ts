/**
 * Looks after one run that no process drives: takes it over, takes the steps that are due, and gives it back.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Random from "effect/Random";
import type { Choice, Rule } from "../../domain/Decision.ts";
import * as RecoveryPolicy from "../../policy/RecoveryPolicy.ts";
import * as End from "../../recorder/End.ts";
import * as Orphan from "../../recorder/Orphan.ts";
import type { QuestionTerms } from "../../recorder/Question.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { Entry, RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import * as CrashPlan from "./CrashPlan.ts";

/** What a program knows that a record does not say. */
export interface TendOptions {
  /** Policies of the program, found by name; `default` and `strict` are known. A run of an unknown one retries nothing by itself. */
  readonly policies?: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>;
  /** Expiry and defaults of the questions that are asked here. */
  readonly terms?: QuestionTerms;
  /** A program's own word for the end of a run of its own that has to go on and cannot; undefined for runs of others. */
  readonly unresumable?: (runId: string) => string | undefined;
  /** The run's user has cancelled it. */
  readonly cancelled?: boolean;
  /**
   * The store was put back to an earlier moment, and its records say less than what happened: nothing goes on without a person's
   * word, and no word counts that was said before.
   */
  readonly restored?: boolean;
}

/** Where a run stands; `skipped`: another process holds it, or has ended it meanwhile. */
export type Outcome = CrashPlan.RunStanding["outcome"] | "skipped";

/** What became of one run. */
export interface Row {
  readonly run_id: string;
  readonly outcome: Outcome;
  /** The rule that was decided by. */
  readonly rule?: Rule;
  /** The revision of its open question. */
  readonly revision?: number;
}

/** Most steps for one run: each looks at the record anew, and a step that an answer overtakes is planned again. */
const stepsMax = 4;

/**
 * Takes a run over and does what is due. Whatever happens, no process drives the run afterwards.
 *
 * @returns where it stands; `skipped` where another process holds it
 */
export const tend = (
  recorder: RunRecorder["Service"],
  runId: string,
  options: TendOptions,
): Effect.Effect<Row, RecorderError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(recorder.claim(runId), (record) =>
      restore(steps(recorder, record, options)).pipe(
        Effect.onExit((exit) =>
          // A write that parks or ends the run has given it back, and a stream of this process may hold it again by now.
          Exit.isSuccess(exit) && exit.value.givenBack ? Effect.void : givenBack(recorder, runId),
        ),
        Effect.map(({ standing }): Row => ({ run_id: runId, ...standing })),
      ),
    ),
  ).pipe(
    Effect.catchIf(
      ({ reason }) => isElsewhere(reason),
      () => Effect.succeed<Row>({ run_id: runId, outcome: "skipped" }),
    ),
  );

/**
 * Ends a run that no process goes on with. A run whose end the store does not take is given back.
 *
 * @returns the run as it was claimed
 */
export const endByHand = (
  recorder: RunRecorder["Service"],
  runId: string,
  reason: string,
): Effect.Effect<RunRecord, RecorderError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const record = yield* recorder.claim(runId);
    const now = clock.currentTimeMillisUnsafe();
    const incident = record.incidents.at(-1);
    const end = incident === undefined ? End.stopped(reason) : End.stoppedAt(incident, reason);
    yield* Effect.onError(recorder.write(runId, CrashPlan.ended(record, end, now)), () =>
      Effect.ignore(recorder.release(runId)),
    );
    return record;
  });

/** Whether something can be done for a parked run without its request: it was answered, has expired, or is parked wrongly. */
export const isOverdue = (record: RunRecord, now: number): boolean => {
  if (record.parked === undefined || record.parked === "interrupted") return false;
  const due = Orphan.due(record);
  switch (due?._tag) {
    case "waiting":
      return (
        record.parked !== "question" ||
        (due.question.expires_at ?? Number.POSITIVE_INFINITY) <= now ||
        CrashPlan.offersInVain(record, due)
      );
    case "answered":
      if (!Orphan.isResumable(record)) return true;
      return record.parked !== "answered" || !(due.choice === "retry" || due.choice === "continue");
    case "offered":
      return record.parked !== "recovered" || !Orphan.isResumable(record);
    case "decide":
    case undefined:
      return true;
  }
};

interface Tended {
  readonly standing: CrashPlan.RunStanding;
  readonly givenBack: boolean;
}

const steps = (
  recorder: RunRecorder["Service"],
  claimed: RunRecord,
  options: TendOptions,
): Effect.Effect<Tended, RecorderError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const { cancelled = false, restored = false } = options;
    // A question about what an older record knows waits for its person: it takes nothing when it expires.
    const terms = restored ? undefined : options.terms;
    const unresumable = options.unresumable?.(claimed.run_id);
    let record = claimed;
    for (let step = 1; ; step += 1) {
      const planned = CrashPlan.next(record, {
        now: clock.currentTimeMillisUnsafe(),
        jitter: yield* Random.next,
        policy: restored ? unknownPolicy : policyOf(record, options.policies ?? []),
        ...(terms === undefined ? {} : { terms }),
        ...(cancelled ? { cancelled } : {}),
        ...(restored ? { restored } : {}),
        ...(unresumable === undefined ? {} : { unresumable }),
      });
      const { standing } = planned;
      if (planned._tag === "keep") return { standing, givenBack: false };
      if (planned._tag === "write") {
        const answered = yield* overtaken(recorder, record, planned.entries, step < stepsMax);
        if (answered === undefined) return { standing, givenBack: true };
        record = answered;
        continue;
      }
      if (step === stepsMax) {
        yield* recorder.write(record.run_id, [{ _tag: "RunParked", reason: "question" }]);
        return { standing, givenBack: true };
      }
      record = yield* expired(recorder, record, planned.question.revision, planned.choice);
    }
  });

/**
 * Writes a step. Where a person has answered the question that it would replace, the answer counts.
 *
 * @returns the record with that answer; undefined where the step is on record
 */
const overtaken = (
  recorder: RunRecorder["Service"],
  record: RunRecord,
  entries: ReadonlyArray<Entry>,
  again: boolean,
): Effect.Effect<RunRecord | undefined, RecorderError> =>
  Effect.catch(Effect.as(recorder.write(record.run_id, entries), undefined), (error) =>
    again && error.reason === "answered"
      ? Effect.map(recorder.run(record.run_id), (now) => now ?? record)
      : Effect.fail(error),
  );

/** Answers an expired question with its default. An answer that came first counts: the record says which. */
const expired = (
  recorder: RunRecorder["Service"],
  record: RunRecord,
  revision: number,
  choice: Choice,
): Effect.Effect<RunRecord, RecorderError> =>
  Effect.catchTag(recorder.answer({ run_id: record.run_id, revision, choice, by: "expiry" }), "AnswerRefused", () =>
    Effect.map(recorder.run(record.run_id), (now) => now ?? record),
  );

/** Another process has the run by now, or it has ended. */
const isElsewhere = (reason: RecorderError["reason"]): boolean =>
  reason === "owned" || reason === "fenced" || reason === "run_ended" || reason === "unknown_run";

/** A run that cannot be given back is given back by the end of this process's lease. */
const givenBack = (recorder: RunRecorder["Service"], runId: string): Effect.Effect<void> =>
  Effect.catch(recorder.release(runId), ({ reason }) =>
    isElsewhere(reason) ? Effect.void : Effect.logWarning("a run could not be given back", { run_id: runId, reason }),
  );

/**
 * Decides runs of a policy that this program does not know: the strict preset, which asks here where it would retry. A
 * program's own policy may ask about any retry, so none is taken for granted in its name.
 */
export const unknownPolicy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.make({
  name: "strict+ask",
  base: "strict",
  stricter: RecoveryPolicy.everyRetryAsks,
});

/**
 * The policy of a name.
 *
 * @param own policies of the program, besides the presets `default` and `strict`
 * @returns undefined where the name is not known
 */
export const named = (
  name: string,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy | undefined =>
  [RecoveryPolicy.default, RecoveryPolicy.strict, unknownPolicy, ...own].find((policy) => policy.name === name);

/** The policy that decides a run. A run that named no policy is decided by the default. */
export const policyOf = (
  record: RunRecord,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy =>
  named(record.policy ?? record.incidents.at(-1)?.policy ?? RecoveryPolicy.default.name, own) ?? unknownPolicy;
