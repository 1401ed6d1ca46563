/**
 * Ends a run, each way that it can end, and records the end before anyone is told (laws L7, L8).
 */
import * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Failure } from "../domain/Failure.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import type { Attempt } from "./AttemptRunner.ts";
import type { Broken, Verdict } from "./Broken.ts";
import type { Carried } from "./Reveal.ts";
import type { Run } from "./Run.ts";
import { RunInterrupted } from "./RunEvent.ts";

/** The answer is whole: hands over what was frozen and lets its calls run. */
export const complete = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  late: Failure | undefined,
): Effect.Effect<"ended"> =>
  Effect.gen(function* () {
    yield* handOverFrozen(run, attempt, false);
    run.chain?.open();
    yield* run.finish(attempt, { state: "completed", reason: attempt.finish ?? "completed" }, () => {
      run.handoff.push({
        _tag: "RunCompleted",
        run_id: run.runId,
        attempts: run.attempts,
        finish: attempt.finish,
        late_failure: late,
      });
      run.handoff.end(Cause.done());
    });
    return "ended" as const;
  });

/** The consumer has taken all it wanted: nothing broke, and what it was handed is its own. */
export const consumerFinished = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    attempt.flow.discardFrozen();
    run.chain?.open();
    const end = attempt.facts.snapshot().terminal_seen
      ? ({ state: "completed", reason: attempt.finish ?? "completed" } as const)
      : ({ state: "stopped", reason: "consumer_finished" } as const);
    return Effect.as(
      run.finish(attempt, end, () => run.handoff.end(Cause.done())),
      "ended" as const,
    );
  });

/** Keeps the partial answer: hands over the text that was frozen, and nothing that could run. */
export const acceptPartial = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  verdict: Verdict,
): Effect.Effect<"ended"> =>
  Effect.andThen(handOverFrozen(run, broken.attempt, true), stop(run, broken, verdict, "accepted_partial"));

/** Stops: nothing of the attempt starts any more, and the caller gets the provider's own error as the cause (law L12). */
export const stop = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  { decision, incident }: Verdict,
  reason: RunInterrupted["reason"],
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    const error = interrupted(run, broken, incident, run.isTakenOver ? "taken_over" : reason);
    const end = {
      state: "stopped",
      reason: reason === "accepted_partial" || reason === "record_failed" ? reason : decision.rule,
      incident: incident.id,
    } as const;
    return Effect.as(
      run.finish(broken.attempt, end, () => run.handoff.end(Effect.fail(error))),
      "ended" as const,
    );
  });

/**
 * Ends the stream and keeps the run: its question is open, or its caller has left it. Nothing of it starts any more here;
 * `StreamProcessor.resume` goes on with it, in this process or another.
 */
export const park = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  incident: RunIncident,
  why: "question" | "interrupted",
): Effect.Effect<"ended"> =>
  Effect.suspend(() => {
    const error = interrupted(run, broken, incident, run.isTakenOver ? "taken_over" : "parked");
    return Effect.as(
      run.park(broken.attempt, why, incident.decision.rule, () => run.handoff.end(Effect.fail(error))),
      "ended" as const,
    );
  });

/** Lets nothing of the response start any more, and gives what the caller is told. */
const interrupted = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  incident: RunIncident,
  reason: RunInterrupted["reason"],
): RunInterrupted => {
  run.chain?.close();
  broken.attempt.flow.discardFrozen();
  return new RunInterrupted({
    reason,
    run_id: run.runId,
    rule: incident.decision.rule,
    failure: incident.failure,
    attempts: run.attempts,
    message: incident.message,
    ...(broken.cause === undefined ? {} : { cause: broken.cause }),
  });
};

/** Ends a run whose recovery has died: the defect reaches the caller, nothing of the run starts any more. */
export const collapse = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  cause: Cause.Cause<never>,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.chain?.close();
    attempt.flow.discardFrozen();
    const end = { state: "stopped", reason: "defect" } as const;
    const collapsed = run.finish(attempt, end, () => run.handoff.end(Effect.failCause(cause)));
    return Effect.ensuring(
      Effect.catchCause(collapsed, () => Effect.sync(() => run.handoff.end(Effect.failCause(cause)))),
      Deferred.succeed(run.done, undefined),
    );
  });

/**
 * Hands over what a resume goes on after. Who cannot discard is still not handed a call before its end is proven: such
 * parts are given back, for the attempt that resumes to hold.
 */
export const handOverResumed = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
): Effect.Effect<Carried<P> | undefined> => {
  if (run.discardable) return Effect.as(handOverFrozen(run, attempt, false), undefined);
  return Effect.suspend(() => {
    const begun = run.chain?.links.some((link) => link.flow.ordinal > 0) === true;
    const carried = attempt.flow.takeHeld(begun);
    return Effect.as(handOverFrozen(run, attempt, false), carried);
  });
};

/**
 * Hands over frozen parts; what they show is on record before (law L8).
 *
 * @returns whether they were: a call that could not be recorded is not
 */
export const handOverFrozen = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  textOnly: boolean,
): Effect.Effect<boolean> =>
  Effect.map(attempt.flow.releaseFrozen(textOnly), (events) => {
    if (events !== undefined) run.handoff.push(...events);
    return events !== undefined;
  });
