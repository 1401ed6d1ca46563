/**
 * Rebuilds a run of an earlier process from its record, so that recovery goes on where that process left it.
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
import * as StoredCancels from "../attach/StoredCancels.ts";
import { Attempt } from "../attempt/Attempt.ts";
import { Reveal } from "../attempt/Reveal.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";
import type { Written } from "../run/Backlog.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import { Chain } from "../run/Chain.ts";
import { Routes } from "../run/Routes.ts";
import type { Run } from "../run/Run.ts";

/** A run that goes on: what broke, and what its record says is due; undefined where the decision has to be taken anew. */
export interface Revived<P> {
  readonly broken: BrokenAttempt<P>;
  readonly due: Exclude<Orphan.Due, { readonly _tag: "decide" }> | undefined;
}

/**
 * Takes a run over and rebuilds it; a run that is refused is given back.
 *
 * @param transcript what the caller says its first request was built from
 * @param enter lets the run in once it is claimed, or says why it cannot go on here by now
 * @returns why not, as a sentence
 */
export const claimed = <P, E, R>(
  run: Run<P, E, R>,
  transcript: string,
  cursor: string | undefined,
  enter: () => string | undefined,
): Effect.Effect<Revived<P> | string> =>
  run.shared.recorder.claim(run.runId).pipe(
    Effect.flatMap((record) =>
      Effect.onError(rebuilt(run, record, { transcript, cursor, enter }), () => givenBack(run)),
    ),
    Effect.catch((error) => Effect.succeed(error.message)),
  );

interface TakeUp {
  readonly transcript: string;
  readonly cursor: string | undefined;
  readonly enter: () => string | undefined;
}

const rebuilt = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  record: RunRecord,
  { cursor, enter, transcript }: TakeUp,
): Effect.fn.Return<Revived<P> | string> {
  const due = Orphan.due(record);
  const refused =
    (yield* refusal(run.shared.recorder, record, due, transcript)) ??
    Routes.problem(run.options.routes, record) ??
    enter();
  // Asked once the run is in: a cancel that comes later is heard.
  const stands = refused === undefined && (yield* cancelStands(run));
  if (stands === "unknown") {
    yield* givenBack(run);
    return "whether its user has cancelled the run cannot be read now";
  }
  const revived = due === undefined || refused !== undefined ? undefined : restore(run, record, due, cursor);
  const recorded = revived !== undefined && (yield* run.writeIntent([{ _tag: "RunResumed" }]));
  // A close that came meanwhile ends no run that has not begun here: the next process goes on with it.
  if (revived !== undefined && recorded && !run.lifecycleClosed) {
    const withdrawn = superseded(record);
    run.response.withdraw(withdrawn);
    if (run.discardable) run.handoff.push(...withdrawn);
    if (stands) yield* Effect.forkDetach(settledBehind(run));
    if (stands || wasCancelled(due)) run.stop("user");
    // Whatever was due, a cancelled run is decided as one.
    return run.userCancelled ? { ...revived, due: undefined } : revived;
  }
  yield* givenBack(run);
  return refused ?? (recorded ? "the processor was closed meanwhile" : "the run could not be recorded");
});

/** Whether its user has cancelled the run while no process took that. */
const cancelStands = <P, E, R>({ runId, shared }: Run<P, E, R>): Effect.Effect<boolean | "unknown"> => {
  const { cancels } = shared.recorder;
  if (cancels === undefined) return Effect.succeed(false);
  const found = Effect.interruptible(StoredCancels.stands(cancels, runId));
  return Effect.orElseSucceed(Effect.timeout(found, recorderWaitMs), () => "unknown" as const);
};

/** Whether the process before this one was told so, and has not come to the end of the run. */
const wasCancelled = (due: Orphan.Due | undefined): boolean => due?._tag === "decide" && due.input.run.user_cancelled;

/** A cancel that stands is carried out once the end of its run is on record: a process that dies before leaves it to the next one. */
const settledBehind = <P, E, R>({ done, runId, shared }: Run<P, E, R>): Effect.Effect<void> =>
  Effect.andThen(
    Deferred.await(done),
    Effect.flatMap(
      Effect.orElseSucceed(shared.recorder.run(runId), () => undefined),
      (record) => (record?.state === "ended" ? StoredCancels.settle(shared.recorder.cancels, runId) : Effect.void),
    ),
  );

/** Gives a claimed run back. While the store is away the release waits for it: no other process could take the run otherwise. */
const givenBack = <P, E, R>({ runId, shared }: Run<P, E, R>): Effect.Effect<void> => {
  const turn = Semaphore.makeUnsafe(1);
  let written: Written = "away";
  // Once: a second release could take the run from a process that has claimed it since.
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
    if (due === undefined) return "the record has no attempt to go on from";
    if (record.transcript === undefined) {
      return "transcript: the run was started without one, so it cannot be told whether this is its request";
    }
    if ((yield* recorder.digest(transcript)) !== record.transcript) {
      return "transcript: expected the one that the run was started with, got another";
    }
    if (Orphan.isSpent(record) && due._tag !== "answered") {
      return `the run was resumed ${record.resumes} times, at most ${resumesMax} go without an answer of a person`;
    }
    return undefined;
  },
  Effect.catch((error) => Effect.succeed(error.message)),
);

/**
 * Gives a run the state that its record has.
 *
 * @param cursor what its caller holds of the last response: with it the decision is taken anew
 * @returns undefined where the record has no attempt
 */
export const restore = <P, E, R>(
  run: Run<P, E, R>,
  record: RunRecord,
  due: Orphan.Due,
  cursor: string | undefined,
): Revived<P> | undefined => {
  const last = record.attempts.at(-1);
  const before = {
    // A caller that could not discard what the run showed cannot do so now, unless it says that it can.
    discardable: run.options.discardable ?? last?.run?.discardable ?? true,
    elapsedMs: Math.max(0, run.shared.clock.currentTimeMillisUnsafe() - record.started_at),
    attempts: last?.attempt ?? 0,
  };
  run.restored(before, Orphan.incidentsSoFar(record));
  run.question.restored(record.questions.at(-1)?.revision ?? 0);
  run.spending.restored(
    { ...(last?.run ?? fresh), waited_ms: record.waited_ms ?? 0 },
    Tokens.inputOf(record.attempts.map(({ facts }) => facts)),
  );
  const isSent = ({ facts, seam }: RunRecord["attempts"][number]) =>
    seam !== undefined && facts.delivery !== "not_sent";
  run.seams?.restored(record.attempts.filter(isSent).length);
  if (run.routes !== undefined) run.goesBy(run.routes.restored(record));
  const attempts = record.attempts.map((attempt) => attemptOf(run, record, attempt, cursor));
  const [first, ...resumed] = attempts.slice(-Orphan.lastResponse(record).length);
  if (first === undefined) return undefined;
  const chain = new Chain<P>(first, resumed);
  const failure = due._tag === "decide" ? due.input.failure : due.incident.failure;
  const brokeFirst = brokenOf(first, failure);
  run.response.restored(chain, brokeFirst);
  if (cursor !== undefined) return { broken: brokenOf(resumed.at(-1) ?? first, failure), due: undefined };
  const broken = { ...brokeFirst, cursorRefused: true, facts: () => chain.facts() };
  return { broken, due: due._tag === "decide" || !canDo(run, due) ? undefined : due };
};

/** An attempt of an earlier process: it never starts here, and none of its calls does. */
const attemptOf = <P, E, R>(
  run: Run<P, E, R>,
  { calls }: RunRecord,
  { attempt, facts, mode, request = "first", route }: AttemptRecord,
  cursor: string | undefined,
): Attempt<P> => {
  const { discardable, options } = run;
  const fold = Orphan.restored(facts, { discardable, boundaries: options.tools });
  const before = leftSomething(fold.snapshot());
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
  // What shows nothing is handed over without a word on record: a caller that can discard may hold parts of any attempt.
  if (discardable || before) revived.flow.handedOverBefore(before);
  for (const call of calls) if (call.attempt === attempt) run.ledger.restore(revived, call, call.verdict);
  return revived;
};

/** Whether an attempt handed over what a continuation may build on. */
const leftSomething = (facts: AttemptFacts): boolean =>
  facts.shown !== "nothing" || facts.tools.some(({ executor }) => executor === "runtime");

/**
 * What the caller must not keep: attempts that a replay has replaced, whatever they showed. The earlier process may have died
 * before its caller heard so; a caller that hears it twice loses nothing.
 */
const superseded = ({ attempts }: RunRecord): ReadonlyArray<AttemptDiscarded> =>
  attempts
    .filter((_, index) => attempts.slice(index + 1).find(({ request }) => request !== "resume")?.mode === "replay")
    .map(({ attempt }) => ({ _tag: "AttemptDiscarded", attempt, keep_through: 0 }));

const brokenOf = <P>(attempt: Attempt<P>, failure: Failure): BrokenAttempt<P> => ({
  attempt,
  failure,
  cause: undefined,
  cursorRefused: false,
  facts: () => attempt.facts.snapshot(),
});

/** Whether this process can carry out what the earlier one has decided; where it cannot, everything is decided anew. */
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
