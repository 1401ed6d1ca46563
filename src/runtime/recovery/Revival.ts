/**
 * Rebuilds a run of an earlier process from its record, so that recovery continues from there.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { resumesMax } from "../../domain/Limits.ts";
import { fresh } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";
import * as Orphan from "../../recorder/Orphan.ts";
import { isOfStore } from "../../recorder/RecorderError.ts";
import type { AttemptRecord, RunRecord } from "../../recorder/RunRecord.ts";
import { type RunRecorder, recorderWaitMs } from "../../recorder/RunRecorder.ts";
import { Attempt } from "../attempt/Attempt.ts";
import { Reveal } from "../attempt/Reveal.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";
import type { Written } from "../run/Backlog.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import { Chain } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import * as StoredCancels from "../run/StoredCancels.ts";

/** A rebuilt run: its failure, and the pending step on its record. The step is undefined if the decision has to be taken again. */
export interface Revived<P> {
  readonly broken: BrokenAttempt<P>;
  readonly due: Exclude<Orphan.Due, { readonly _tag: "decide" }> | undefined;
}

/**
 * Claims a run and rebuilds it. A run that cannot continue here is released.
 *
 * @param transcript the caller's transcript of the first request
 * @param enter admits the claimed run, or returns why it can no longer continue here
 * @returns the rebuilt run, or the reason for the refusal as a sentence
 */
export const claim = <P, E, R>(
  run: Run<P, E, R>,
  transcript: string,
  cursor: string | undefined,
  enter: () => string | undefined,
): Effect.Effect<Revived<P> | string> =>
  run.shared.recorder.claim(run.runId).pipe(
    Effect.flatMap((record) =>
      Effect.onError(rebuild(run, record, { transcript, cursor, enter }), () => releaseRun(run)),
    ),
    Effect.catch((error) => Effect.succeed(error.message)),
  );

interface TakeUp {
  readonly transcript: string;
  readonly cursor: string | undefined;
  readonly enter: () => string | undefined;
}

const rebuild = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  record: RunRecord,
  { cursor, enter, transcript }: TakeUp,
): Effect.fn.Return<Revived<P> | string> {
  const due = Orphan.findDueStep(record);
  const refused =
    (yield* refusal(run.shared.recorder, record, due, transcript)) ?? problemOfRoute(run, record) ?? enter();
  // Checked after the run is admitted, because a cancel that arrives later reaches the run directly.
  const stands = refused === undefined && (yield* isCancelPending(run));
  if (stands === "unknown") {
    yield* releaseRun(run);
    return "the store did not report whether the user cancelled the run";
  }
  const revived = due === undefined || refused !== undefined ? undefined : restore(run, record, due, cursor);
  const recorded = revived !== undefined && (yield* run.writeIntent([{ _tag: "RunResumed" }]));
  // If the processor closes in the meantime, it must not end a run that has not started here. The next process continues the run.
  if (revived !== undefined && recorded && !run.isLifecycleClosed) {
    const withdrawn = replacedAttempts(record);
    run.response.withdraw(withdrawn);
    if (run.discardable) run.handoff.push(...withdrawn);
    if (stands) yield* Effect.forkDetach(settleCancelAtEnd(run));
    if (stands || wasCancelled(due)) run.stop("user");
    // A cancelled run is decided as cancelled, whichever step was pending.
    return run.isUserCancelled ? { ...revived, due: undefined } : revived;
  }
  yield* releaseRun(run);
  return refused ?? (recorded ? "the processor was closed meanwhile" : "the run could not be recorded");
});

/** Returns a sentence with the reason if the run lacks the route of its last recorded attempt; undefined if it has it. */
const problemOfRoute = <P, E, R>({ routes }: Run<P, E, R>, { attempts }: RunRecord): string | undefined => {
  const id = attempts.at(-1)?.route;
  return id === undefined || routes?.has(id) === true
    ? undefined
    : `routes: expected one with the id "${id}", which the run uses`;
};

/** Returns true if the user cancelled the run and no process has handled the cancel yet. */
const isCancelPending = <P, E, R>({ runId, shared }: Run<P, E, R>): Effect.Effect<boolean | "unknown"> => {
  const { cancels } = shared.recorder;
  if (cancels === undefined) return Effect.succeed(false);
  const found = Effect.interruptible(StoredCancels.isPending(cancels, runId));
  return Effect.orElseSucceed(Effect.timeout(found, recorderWaitMs), () => "unknown" as const);
};

/** Returns true if the earlier process received the cancel but did not reach the end of the run. */
const wasCancelled = (due: Orphan.Due | undefined): boolean => due?._tag === "decide" && due.input.run.user_cancelled;

/** Settles a pending cancel once the end of its run is on record. If this process dies first, the next one settles it. */
const settleCancelAtEnd = <P, E, R>({ done, runId, shared }: Run<P, E, R>): Effect.Effect<void> =>
  Effect.andThen(
    Deferred.await(done),
    Effect.flatMap(
      Effect.orElseSucceed(shared.recorder.run(runId), () => undefined),
      (record) => (record?.state === "ended" ? StoredCancels.settle(shared.recorder.cancels, runId) : Effect.void),
    ),
  );

/** Releases a claimed run. The release waits for an unavailable store, because otherwise no other process could take the run. */
const releaseRun = <P, E, R>({ runId, shared }: Run<P, E, R>): Effect.Effect<void> => {
  const turn = Semaphore.makeUnsafe(1);
  let written: Written = "away";
  // Releases only once, because a second release could take the run from a process that has claimed it since.
  const release: Effect.Effect<Written> = Effect.match(shared.recorder.release(runId), {
    onFailure: (error) => (isOfStore(error) ? "away" : "gone"),
    onSuccess: () => "recorded",
  });
  const flush = turn.withPermit(
    Effect.suspend(() =>
      written === "away" ? Effect.map(release, (now) => (written = now)) : Effect.succeed(written),
    ),
  );
  return Effect.flatMap(flush, (now) =>
    now === "away" ? shared.backlog.add({ runId, flush, giveUp: () => 0 }) : Effect.void,
  );
};

const refusal = Effect.fnUntraced(
  function* (recorder: RunRecorder["Service"], record: RunRecord, due: Orphan.Due | undefined, transcript: string) {
    if (due === undefined) return "the record has no attempt to continue from";
    if (record.transcript === undefined) {
      return "transcript: the run was started without one, so we cannot tell whether this is its request";
    }
    if ((yield* recorder.digest(transcript)) !== record.transcript) {
      return "transcript: expected the transcript that the run was started with, got another";
    }
    if (Orphan.isSpent(record) && due._tag !== "answered") {
      return `the run was resumed ${record.resumes} times; at most ${resumesMax} are allowed without a person's answer`;
    }
    return undefined;
  },
  Effect.catch((error) => Effect.succeed(error.message)),
);

/**
 * Restores a run from its record.
 *
 * @param cursor the caller's cursor in the last response; with it the decision is taken again
 * @returns undefined if the record has no attempt
 */
export const restore = <P, E, R>(
  run: Run<P, E, R>,
  record: RunRecord,
  due: Orphan.Due,
  cursor: string | undefined,
): Revived<P> | undefined => {
  const last = record.attempts.at(-1);
  const before = {
    // A caller that could not discard shown parts in the earlier process cannot do so now either, unless it states otherwise.
    discardable: run.options.discardable ?? last?.run?.discardable ?? true,
    elapsedMs: Math.max(0, run.shared.clock.currentTimeMillisUnsafe() - record.started_at),
    attempts: last?.attempt ?? 0,
  };
  run.restore(before, Orphan.lastIncidentNumber(record));
  run.question.restore(record.questions.at(-1)?.revision ?? 0);
  run.spending.restore(
    { ...(last?.run ?? fresh), waited_ms: record.waited_ms ?? 0 },
    Tokens.inputOf(record.attempts.map(({ facts }) => facts)),
  );
  run.seams?.restore(record.attempts);
  if (run.routes !== undefined) run.switchRoute(run.routes.restore(record));
  const attempts = record.attempts.map((attempt) => attemptOf(run, record, attempt, cursor));
  const [first, ...resumed] = attempts.slice(-Orphan.lastResponse(record).length);
  if (first === undefined) return undefined;
  const chain = new Chain<P>(first, resumed);
  const failure = due._tag === "decide" ? due.input.failure : due.incident.failure;
  const firstBreak = makeBrokenAttempt(first, failure);
  run.response.restore(chain, firstBreak);
  if (cursor !== undefined) return { broken: makeBrokenAttempt(resumed.at(-1) ?? first, failure), due: undefined };
  const broken = { ...firstBreak, cursorRefused: true, facts: () => chain.facts() };
  return { broken, due: due._tag === "decide" || !canDo(run, due) ? undefined : due };
};

/** Restores an attempt of an earlier process. Neither the attempt nor its calls ever start here. */
const attemptOf = <P, E, R>(
  run: Run<P, E, R>,
  { calls }: RunRecord,
  { attempt, facts, mode, request = "first", route }: AttemptRecord,
  cursor: string | undefined,
): Attempt<P> => {
  const { discardable, options } = run;
  const fold = Orphan.restoreFacts(facts, { discardable, boundaries: options.tools });
  const before = hasHandedOver(fold.snapshot());
  const revived = new Attempt<P>(run, {
    number: attempt,
    mode,
    request,
    calls: request === "first" ? [] : run.ledger.calls(),
    cursor,
    facts: fold,
    discarded: [],
    route,
    reveal: new Reveal<P>("live", run.shared.pool, () => 0),
    seam: undefined,
    carried: undefined,
  });
  revived.fence.seal();
  // Parts that show nothing are delivered unrecorded, so a discardable caller may hold parts of any attempt.
  if (discardable || before) revived.flow.assumeHandedOver(before);
  for (const call of calls) if (call.attempt === attempt) run.ledger.restore(revived, call, call.verdict);
  return revived;
};

/** Returns true if an attempt handed over anything that a continuation may build on. */
const hasHandedOver = (facts: AttemptFacts): boolean =>
  facts.shown !== "nothing" || facts.tools.some(({ executor }) => executor === "runtime");

/**
 * Returns the attempts that a replay replaced, which the caller must discard. The earlier process may have died before its caller received
 * the withdrawal. Discarding twice is harmless.
 */
const replacedAttempts = ({ attempts }: RunRecord): ReadonlyArray<AttemptDiscarded> =>
  attempts
    .filter((_, index) => attempts.slice(index + 1).find(({ request }) => request !== "resume")?.mode === "replay")
    .map(({ attempt }) => ({ _tag: "AttemptDiscarded", attempt, keep_through: 0 }));

const makeBrokenAttempt = <P>(attempt: Attempt<P>, failure: Failure): BrokenAttempt<P> => ({
  attempt,
  failure,
  cause: undefined,
  cursorRefused: false,
  facts: () => attempt.facts.snapshot(),
});

/** Returns true if this process can carry out the earlier decision. Otherwise the decision is taken again. */
const canDo = <P, E, R>(run: Run<P, E, R>, due: Exclude<Orphan.Due, { readonly _tag: "decide" }>): boolean => {
  const modes = modesOf(due);
  if (run.options.canContinue === undefined && modes.includes("continue")) return false;
  const { facts, run: before } = due.incident;
  return run.discardable || !before.discardable || facts.shown === "nothing" || !modes.includes("retry");
};

const modesOf = (due: Exclude<Orphan.Due, { readonly _tag: "decide" }>): ReadonlyArray<string> => {
  switch (due._tag) {
    case "offered":
      return [due.incident.decision.mode === "continue" ? "continue" : "retry"];
    case "answered":
      return [due.choice];
    case "waiting":
      return due.question.choices;
  }
};
