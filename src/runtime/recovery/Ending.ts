/** Ends a run: complete, partial, stopped, parked or failed. The end is recorded before the caller receives it (L7, L8). */
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

/** Completes a run with a whole response: hands over the frozen parts and lets its calls run. */
export const complete = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  late: Failure | undefined,
): Effect.fn.Return<"ended"> {
  if (!(yield* handOverFrozen(run, attempt, false))) return yield* endUnrecorded(run, attempt);
  markResponseComplete(run);
  yield* run.finish(attempt, End.complete(attempt.finish), () => emitCompletion(run, attempt, late));
  return "ended" as const;
});

/**
 * Completes a run as `complete` does, but without a fiber, if nothing is frozen and no write is in flight.
 *
 * @param over called when the stream has its end
 */
export const completeThen = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, over: () => void): void => {
  markResponseComplete(run);
  run.finishThen(attempt, End.complete(attempt.finish), () => emitCompletion(run, attempt, undefined), over);
};

const markResponseComplete = <P, E, R>({ chain, routes }: Run<P, E, R>): void => {
  chain?.open();
  routes?.recordResponse();
};

const emitCompletion = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, late: Failure | undefined): void => {
  // The write of the end reveals whether this process still owned the run.
  if (run.loss !== undefined) {
    run.handoff.end(Effect.fail(withoutIncident(run)));
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
  // Check the loss only when the reader takes the end. A slow reader may take it long after another process took the run over.
  const closeStream = (): Effect.Effect<never, RunInterrupted | Cause.Done> =>
    run.handoff.hasLostEnd ? Effect.fail(withoutIncident(run)) : Cause.done();
  run.handoff.end(Effect.suspend(closeStream));
};

/** Ends a run whose response is whole but whose call could not be recorded. The call is not handed over (L8). */
const endUnrecorded = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    run.chain?.seal();
    attempt.flow.discardFrozen();
    const end = End.stop("record_failed");
    return Effect.as(
      run.finish(attempt, end, () => run.handoff.end(Effect.fail(withoutIncident(run)))),
      "ended" as const,
    );
  });

/** Returns the error of a run that has no incident: another process took it, or its last call could not be recorded. */
const withoutIncident = <P, E, R>({ attempts, loss, routes, runId }: Run<P, E, R>): RunInterrupted =>
  new RunInterrupted({
    reason: loss ?? "record_failed",
    run_id: runId,
    rule: loss === undefined ? "not_retryable" : "lifecycle_closed",
    failure: loss === undefined ? { kind: "unknown" } : { kind: "cancelled", by: "lifecycle" },
    attempts,
    message: sentences[loss ?? "record_failed"],
    ...(routes?.id === undefined ? {} : { route: routes.id }),
  });

const sentences = {
  record_failed:
    "The response is complete, but its last tool call could not be recorded, so the call was not handed over. Nothing was repeated. Ask again when the store accepts writes.",
  taken_over: "Another process has taken this run over and continues it. Look it up by its id; do not start it again.",
  refused: "runId: expected a new id; the store knows it as another run. Start again with a new id.",
} as const;

/** Ends a run whose consumer has taken all that it wanted. No attempt broke, and the consumer keeps its parts. */
export const finishForConsumer = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    attempt.flow.discardFrozen();
    run.chain?.open();
    const end = attempt.facts.snapshot().terminal_seen ? End.complete(attempt.finish) : End.stop("consumer_finished");
    return Effect.as(
      run.finish(attempt, end, () => run.handoff.end(Cause.done())),
      "ended" as const,
    );
  });

/** Keeps the partial response: hands over the frozen text, but no call that could run. */
export const acceptPartial = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
): Effect.Effect<"ended"> =>
  Effect.andThen(handOverFrozen(run, broken.attempt, true), stop(run, broken, taken, "accepted_partial"));

/** Stops a run. No call of the attempt starts any more, and the caller receives the provider's own error as the cause (L12). */
export const stop = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { incident }: RecordedDecision,
  reason: RunInterrupted["reason"],
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    seal(run, broken);
    const own = reason === "accepted_partial" || reason === "record_failed" ? reason : undefined;
    const end = End.stopAt(incident, own);
    return Effect.as(
      run.finish(broken.attempt, end, () => run.handoff.end(Effect.fail(interruption(run, broken, incident, reason)))),
      "ended" as const,
    );
  });

/**
 * Ends the stream and keeps the run, because its question is open or its caller has left. No call of the run starts here any more;
 * `StreamProcessor.takeUp` resumes the run, in this process or another. This process keeps ownership while one of the run's handlers is
 * running, because another process could not learn the outcome of that call.
 */
export const park = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  why: "question" | "interrupted",
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    seal(run, broken);
    const emit = () => run.handoff.end(Effect.fail(interruption(run, broken, incident, "parked")));
    return Effect.as(run.park(broken.attempt, why, incident.decision.rule, emit), "ended" as const);
  });

/** Prevents all calls of the response from starting. */
const seal = <P, E, R>(run: Run<P, E, R>, { attempt }: BrokenAttempt<P>): void => {
  run.chain?.seal();
  attempt.flow.discardFrozen();
};

/** Builds the caller's error after the end is written, because only then is it known whether this process still owned the run. */
const interruption = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  reason: RunInterrupted["reason"],
): RunInterrupted => {
  const { attempts, loss, runId } = run;
  const { cause, failure, message, route } = selectFailure(run, broken, incident, reason);
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

/** The caller's view of a failure. */
interface Told {
  readonly failure: Failure;
  readonly message: string;
  readonly cause: unknown;
  readonly route: string | undefined;
}

/**
 * Selects the failure to report. A run that changed routes reports the failure of its first route. A stop and a failure of the caller's own
 * code are always reported as they are (L12).
 */
const selectFailure = <P, E, R>(
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
 * Ends a run whose recovery has thrown. The caller receives the defect, and no call of the run starts any more. The run may already have an
 * end on record that the defect kept from its stream.
 */
export const collapse = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  cause: Cause.Cause<never>,
): Effect.Effect<void> => {
  const sealed = Effect.suspend(() => {
    run.chain?.seal();
    attempt.flow.discardFrozen();
    return run.finish(attempt, End.stop("defect"), () => undefined);
  });
  const over = Effect.sync(() => {
    run.handoff.end(Effect.failCause(cause));
    Deferred.doneUnsafe(run.done, Effect.void);
  });
  const report = Effect.logError("a defect ended the recovery of a run", { run_id: run.runId }, cause);
  return Effect.andThen(report, Effect.andThen(Effect.exit(sealed), over));
};

/**
 * Hands over the parts after which a resumption continues. A caller that cannot discard must not receive a call before the terminal marker
 * (L4), so parts that it must not receive yet are returned, and the resuming attempt holds them.
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

/** Hands over the frozen text before the first call and drops the rest, because the continuation joins onto that text. */
export const handOverText = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    attempt.flow.takeHeld(true);
    return handOverFrozen(run, attempt, false);
  });

/**
 * Hands over frozen parts, after recording what they show (L8).
 *
 * @returns true if they were handed over; false if a call could not be recorded or another process took the run
 */
export const handOverFrozen = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  textOnly: boolean,
): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (run.loss !== undefined) return Effect.succeed(false);
    return Effect.map(attempt.flow.releaseFrozen(textOnly), (events) => {
      if (events !== undefined) run.handoff.push(...events);
      return events !== undefined;
    });
  });
