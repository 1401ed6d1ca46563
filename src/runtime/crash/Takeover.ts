/**
 * Handles one run without an owner: claims it, takes the pending steps, and releases it.
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

/** Settings of the program that are not on record. */
export interface TakeoverOptions {
  /**
   * The program's policies, found by name; `default` and `strict` are built in. A run whose policy is unknown never retries automatically.
   */
  readonly policies?: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>;
  /** Expiry and defaults of questions asked here. */
  readonly terms?: QuestionTerms;
  /**
   * Returns the program's own end reason for one of its runs that would have to continue but cannot; undefined for runs of other programs.
   */
  readonly unresumable?: (runId: string) => string | undefined;
  /** True if the user has cancelled the run. */
  readonly cancelled?: boolean;
  /**
   * True if the store was restored to an earlier state, so that its records may lack later events. Then nothing continues without a
   * person's answer, and earlier answers do not count.
   */
  readonly restored?: boolean;
}

/** The state of a run; `skipped` if another process holds it or has ended it in the meantime. */
export type Outcome = CrashPlan.RunStanding["outcome"] | "skipped";

/** The result for one run. */
export interface Row {
  readonly run_id: string;
  readonly outcome: Outcome;
  /** The rule of the decision. */
  readonly rule?: Rule;
  /** The revision of the open question. */
  readonly revision?: number;
}

/** Maximum steps per run. Each step reads the record again, and is planned again if an answer overtakes it. */
const stepsMax = 4;

/**
 * Claims a run, takes the pending steps, and releases the run.
 *
 * @returns the state of the run; `skipped` if another process holds it
 */
export const takeOver = (
  recorder: RunRecorder["Service"],
  runId: string,
  options: TakeoverOptions,
): Effect.Effect<Row, RecorderError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(recorder.claim(runId), (record) =>
      restore(takeSteps(recorder, record, options)).pipe(
        Effect.onExit((exit) =>
          // The write that parks or ends the run also releases it. A stream of this process may already own it again.
          Exit.isSuccess(exit) && exit.value.givenBack ? Effect.void : releaseRun(recorder, runId),
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
 * Ends a run that no process will continue. If the store does not accept the end, the run is released.
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
    const end = incident === undefined ? End.stop(reason) : End.stopAt(incident, reason);
    yield* Effect.onError(recorder.write(runId, CrashPlan.endEntries(record, end, now)), () =>
      Effect.ignore(recorder.release(runId)),
    );
    return record;
  });

/**
 * Returns true if a parked run needs a step that is possible without the run's request: it was answered, has expired, or is parked for the
 * wrong reason.
 */
export const isOverdue = (record: RunRecord, now: number): boolean => {
  if (record.parked === undefined || record.parked === "interrupted") return false;
  const due = Orphan.findDueStep(record);
  switch (due?._tag) {
    case "waiting":
      return (
        record.parked !== "question" ||
        (due.question.expires_at ?? Number.POSITIVE_INFINITY) <= now ||
        CrashPlan.isOfferFutile(record, due)
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

interface TakenOver {
  readonly standing: CrashPlan.RunStanding;
  readonly givenBack: boolean;
}

const takeSteps = (
  recorder: RunRecorder["Service"],
  claimed: RunRecord,
  options: TakeoverOptions,
): Effect.Effect<TakenOver, RecorderError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const { cancelled = false, restored = false } = options;
    // A question on a restored record waits for a person, so it gets no expiry.
    const terms = restored ? undefined : options.terms;
    const unresumable = options.unresumable?.(claimed.run_id);
    let record = claimed;
    for (let step = 1; ; step += 1) {
      const planned = CrashPlan.planNext(record, {
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
        const answered = yield* writeUnlessAnswered(recorder, record, planned.entries, step < stepsMax);
        if (answered === undefined) return { standing, givenBack: true };
        record = answered;
        continue;
      }
      if (step === stepsMax) {
        yield* recorder.write(record.run_id, [{ _tag: "RunParked", reason: "question" }]);
        return { standing, givenBack: true };
      }
      record = yield* expireQuestion(recorder, record, planned.question.revision, planned.choice);
    }
  });

/**
 * Writes a step. If a person has answered the question that the step would replace, the answer takes precedence.
 *
 * @returns the record with that answer; undefined if the step was written
 */
const writeUnlessAnswered = (
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

/** Answers an expired question with its default. If another answer came first, that answer counts. */
const expireQuestion = (
  recorder: RunRecorder["Service"],
  record: RunRecord,
  revision: number,
  choice: Choice,
): Effect.Effect<RunRecord, RecorderError> =>
  Effect.catchTag(recorder.answer({ run_id: record.run_id, revision, choice, by: "expiry" }), "AnswerRefused", () =>
    Effect.map(recorder.run(record.run_id), (now) => now ?? record),
  );

/** Returns true if another process now owns the run, or the run has ended or has no record. */
const isElsewhere = (reason: RecorderError["reason"]): boolean =>
  reason === "owned" || reason === "fenced" || reason === "run_ended" || reason === "unknown_run";

/** Releases a run. If that fails, it is released when this process's lease ends. */
const releaseRun = (recorder: RunRecorder["Service"], runId: string): Effect.Effect<void> =>
  Effect.catch(recorder.release(runId), ({ reason }) =>
    isElsewhere(reason) ? Effect.void : Effect.logWarning("could not release a run", { run_id: runId, reason }),
  );

/**
 * Decides runs whose policy this program does not know. It is the strict preset, but asks where the preset would retry, because the unknown
 * policy might have asked.
 */
export const unknownPolicy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.make({
  name: "strict+ask",
  base: "strict",
  stricter: RecoveryPolicy.everyRetryAsks,
});

/**
 * Returns the policy with this name.
 *
 * @param own the program's policies, in addition to the presets `default` and `strict`
 * @returns undefined if the name is unknown
 */
export const findPolicy = (
  name: string,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy | undefined =>
  [RecoveryPolicy.default, RecoveryPolicy.strict, unknownPolicy, ...own].find((policy) => policy.name === name);

/** Returns the policy that decides a run. A run that named no policy uses the default one. */
export const policyOf = (
  record: RunRecord,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy =>
  findPolicy(record.policy ?? record.incidents.at(-1)?.policy ?? RecoveryPolicy.default.name, own) ?? unknownPolicy;
