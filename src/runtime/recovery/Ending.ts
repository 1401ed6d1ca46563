/**
 * Ends a run, in each way that it can end: the end is on record before the caller hears of it (L7, L8).
 */
import * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Failure } from "../../domain/Failure.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { explain } from "../../policy/Explanation.ts";
import * as End from "../../recorder/End.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { Carried } from "../attempt/Reveal.ts";
import { RunInterrupted } from "../contract/RunEvent.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import { routeOf } from "../run/RunSnapshot.ts";
import type { RecordedDecision } from "./Incidents.ts";

/** The response is whole: hands over what was frozen and lets its calls run. */
export const complete = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  late: Failure | undefined,
): Effect.fn.Return<"ended"> {
  if (!(yield* handOverFrozen(run, attempt, false))) return yield* unrecorded(run, attempt);
  answered(run);
  yield* run.finish(attempt, End.completed(attempt.finish), () => completes(run, attempt, late));
  return "ended" as const;
});

/**
 * As `complete`, of a response of which nothing is frozen and no write is under way, and without a fiber.
 *
 * @param over called once the stream has its end
 */
export const completeThen = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, over: () => void): void => {
  answered(run);
  run.finishThen(attempt, End.completed(attempt.finish), () => completes(run, attempt, undefined), over);
};

const answered = <P, E, R>({ chain, routes }: Run<P, E, R>): void => {
  chain?.open();
  routes?.answered();
};

/** Tells the caller that its response is whole. */
const completes = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, late: Failure | undefined): void => {
  // Only the write of the end has told whether the run is still this process's.
  if (run.loss !== undefined) {
    run.handoff.end(Effect.fail(withoutIncident(run, run.flows)));
    return;
  }
  run.handoff.push({
    _tag: "RunCompleted",
    run_id: run.runId,
    attempts: run.attempts,
    finish: attempt.finish,
    late_failure: late,
    ...routeOf(attempt),
  });
  // A reader that is slow may take its end long after the store went away and another process took the run.
  const left = (): Effect.Effect<never, RunInterrupted | Cause.Done> =>
    run.handoff.lacksEnd ? Effect.fail(withoutIncident(run, run.flows)) : Cause.done();
  run.handoff.end(Effect.suspend(left));
};

/** The response is whole, and a call of it could not be put on record: the call is not handed over (L8). */
const unrecorded = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    run.chain?.seal();
    attempt.flow.discardFrozen();
    const end = End.stopped("record_failed");
    return Effect.as(
      run.finish(attempt, end, () => run.handoff.end(Effect.fail(withoutIncident(run)))),
      "ended" as const,
    );
  });

/**
 * What the caller hears where a run stops at its own end: the run was lost, or its last call could not be recorded.
 *
 * @param isWhole the run was lost, and all of its response was handed over
 */
const withoutIncident = <P, E, R>({ attempts, loss, routes, runId }: Run<P, E, R>, isWhole = false): RunInterrupted => {
  const lostBy = isWhole ? "already_complete" : "lifecycle_closed";
  return new RunInterrupted({
    reason: loss ?? "record_failed",
    run_id: runId,
    rule: loss === undefined ? "not_retryable" : lostBy,
    failure: loss === undefined ? { kind: "unknown" } : { kind: "cancelled", by: "lifecycle" },
    attempts,
    message: isWhole ? sentences.whole : loss === undefined ? sentences.record_failed : sentences[loss],
    ...(routes?.id === undefined ? {} : { route: routes.id }),
  });
};

const sentences = {
  record_failed:
    "The response is complete, but its last tool call could not be recorded, so the call was not handed over. Nothing was repeated. Ask again when the store of runs takes writes.",
  taken_over:
    "Another process has taken this run over and goes on with it. Look it up by its id; do not start it again.",
  whole:
    "The response is complete. Another process has taken the run over meanwhile, so that the run's end is that one's word.",
  refused: "runId: expected a new id; the store of runs knows it as another run. Start again with a new id.",
} as const;

/** The consumer has taken all that it wanted: nothing broke, and it keeps what it was handed. */
export const consumerFinished = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    attempt.flow.discardFrozen();
    run.chain?.open();
    const end = attempt.facts.snapshot().terminal_seen
      ? End.completed(attempt.finish)
      : End.stopped("consumer_finished");
    return Effect.as(
      run.finish(attempt, end, () => run.handoff.end(Cause.done())),
      "ended" as const,
    );
  });

/** Keeps the partial response: hands over the text that was frozen, and nothing that could run. */
export const acceptPartial = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
): Effect.Effect<"ended"> =>
  Effect.andThen(handOverFrozen(run, broken.attempt, true), stop(run, broken, taken, "accepted_partial"));

/** Stops: nothing of the attempt starts any more, and the caller gets the provider's own error as the cause (L12). */
export const stop = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { incident }: RecordedDecision,
  reason: RunInterrupted["reason"],
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    seal(run, broken);
    const own = reason === "accepted_partial" || reason === "record_failed" ? reason : undefined;
    const end = End.stoppedAt(incident, own);
    return Effect.as(
      run.finish(broken.attempt, end, () => run.handoff.end(Effect.fail(interrupted(run, broken, incident, reason)))),
      "ended" as const,
    );
  });

/**
 * Ends the stream and keeps the run: its question is open, or its caller has left it. Nothing of it starts here any more;
 * `StreamProcessor.takeUp` goes on with it, in this process or another. While a handler of it runs here the run stays with
 * this process: another one would take the call for one of unknown outcome.
 */
export const park = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  why: "question" | "interrupted",
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    seal(run, broken);
    const emit = () => run.handoff.end(Effect.fail(interrupted(run, broken, incident, "parked")));
    return Effect.as(run.park(broken.attempt, why, incident.decision.rule, emit), "ended" as const);
  });

/** Lets nothing of the response start any more. */
const seal = <P, E, R>(run: Run<P, E, R>, { attempt }: BrokenAttempt<P>): void => {
  run.chain?.seal();
  attempt.flow.discardFrozen();
};

/** What the caller hears once the end is written: only then is it known whether the run is still this process's. */
const interrupted = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  reason: RunInterrupted["reason"],
): RunInterrupted => {
  const { attempts, loss, runId } = run;
  const { cause, failure, message, route } = told(run, broken, incident, reason);
  return new RunInterrupted({
    reason: loss ?? reason,
    run_id: runId,
    rule: incident.decision.rule,
    failure,
    attempts,
    message: loss === undefined ? message : sentences[loss],
    ...(route === undefined ? {} : { route }),
    ...(cause === undefined ? {} : { cause }),
  });
};

/** What the caller is told. */
interface Told {
  readonly failure: Failure;
  readonly message: string;
  readonly cause: unknown;
  readonly route: string | undefined;
}

/** What broke: on the first route, where a run ends that has moved. What a stop or the caller's own code did stays its own (L12). */
const told = <P, E, R>(
  run: Run<P, E, R>,
  { attempt, cause }: BrokenAttempt<P>,
  { decision, facts, failure, message }: RunIncident,
  reason: RunInterrupted["reason"],
): Told => {
  const first = run.routes?.firstFailure;
  const isOwn = failure.kind === "cancelled" || failure.kind === "caller_failed";
  if (first === undefined || isOwn || (reason !== "do_not_retry" && reason !== "stopped"))
    return { failure, message, cause, route: attempt.setup.route };
  const { delivery, progress } = first.facts;
  return {
    failure: first.failure,
    message: explain(decision, first.failure, { ...facts, delivery, progress }),
    cause: first.cause,
    route: first.on.id,
  };
};

/**
 * Ends a run whose recovery has died: the defect reaches the caller, and nothing of the run starts any more. Where the run had
 * its end already, the defect may have kept its stream from it.
 */
export const collapse = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  cause: Cause.Cause<never>,
): Effect.Effect<void> => {
  const sealed = Effect.suspend(() => {
    run.chain?.seal();
    attempt.flow.discardFrozen();
    return run.finish(attempt, End.stopped("defect"), () => undefined);
  });
  const over = Effect.sync(() => {
    run.handoff.end(Effect.failCause(cause));
    Deferred.doneUnsafe(run.done, Effect.void);
  });
  const report = Effect.logError("a defect ended the recovery of a run", { run_id: run.runId }, cause);
  return Effect.andThen(report, Effect.andThen(Effect.exit(sealed), over));
};

/**
 * Hands over what a resume goes on after. A caller that cannot discard must not receive a call before the terminal marker (L4):
 * such parts are given back, and the attempt that resumes holds them.
 */
export const handOverResumed = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
): Effect.Effect<Carried<P> | undefined> => {
  if (run.discardable && !run.isAway) return Effect.as(handOverFrozen(run, attempt, false), undefined);
  return Effect.suspend(() => {
    const begun = run.chain?.links.some((link) => link.flow.ordinal > 0) === true;
    // Nothing is handed over while the reader is away (L4).
    if (run.isAway) return Effect.succeed(attempt.flow.takeAll(begun));
    const carried = attempt.flow.takeHeld(begun);
    return Effect.as(handOverFrozen(run, attempt, false), carried);
  });
};

/** Hands over what was frozen in front of the first call, and drops the rest: the text goes on behind it. */
export const handOverText = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    attempt.flow.takeHeld(true);
    return handOverFrozen(run, attempt, false);
  });

/**
 * Hands over frozen parts; what they show is on record before (L8).
 *
 * @returns whether they were handed over: not where a call could not be recorded, nor where the run was lost
 */
export const handOverFrozen = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  textOnly: boolean,
): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (run.loss !== undefined && !run.flows) return Effect.succeed(false);
    return Effect.map(attempt.flow.releaseFrozen(textOnly), (events) => {
      if (events !== undefined) run.handoff.push(...events);
      return events !== undefined;
    });
  });
