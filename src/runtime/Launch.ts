/**
 * Launches the next attempt of a run: withdraws or keeps what the last one showed, and puts the start on record first.
 */
import { Effect } from "effect";
import type { AttemptMode } from "../domain/Run.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import type { Attempt, AttemptSetup } from "./AttemptRunner.ts";
import * as Ending from "./Ending.ts";
import type { Broken } from "./Incidents.ts";
import type { Run } from "./Run.ts";

/**
 * Launches an attempt.
 *
 * @param mode `replay` repeats the broken attempt's own request (law L3), `continue` builds on what has settled, `resume`
 *   goes on in the very same response
 * @param incident the recorded decision that this acts on
 */
export const launch = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  mode: AttemptMode,
  incident: RunIncident,
): Effect.Effect<"launched" | "ended"> =>
  Effect.gen(function* () {
    const { attempt } = broken;
    if (mode === "replay") withdraw(run, attempt);
    else yield* keep(run, attempt, mode);
    const next = run.prepare(setupOf(run, attempt, mode));
    const recorded = yield* run.write([
      { _tag: "IncidentMarked", incident: incident.id, status: "acted_on" },
      {
        _tag: "AttemptStarted",
        attempt: next.attempt,
        mode,
        at_ms: run.elapsedMs,
        facts: next.facts.snapshot(),
      },
    ]);
    if (!recorded) {
      run.attempts -= 1;
      return yield* Ending.stop(
        run,
        broken,
        { decision: incident.decision, incident, recorded: false },
        "record_failed",
      );
    }
    run.handoff.push({ _tag: "AttemptStarted", run_id: run.runId, attempt: next.attempt, mode });
    run.start(next);
    return "launched";
  });

const withdraw = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): void => {
  attempt.fence.close();
  attempt.discardFrozen();
  if (attempt.ordinal > 0) run.handoff.push({ _tag: "AttemptDiscarded", attempt: attempt.attempt, keep_through: 0 });
};

/** Hands over what was frozen and lets waiting calls run to their end; a continuation then drops what is left open. */
const keep = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, mode: AttemptMode): Effect.Effect<void> =>
  Effect.gen(function* () {
    // Who cannot discard is not handed calls that a continuation would leave open.
    yield* Ending.handOverFrozen(run, attempt, mode === "continue" && !run.discardable);
    attempt.fence.open();
    if (mode === "resume") return;
    yield* Effect.yieldNow;
    yield* attempt.fence.drained;
    attempt.fence.close();
    const keep_through = attempt.keepThrough;
    if (run.discardable && keep_through < attempt.ordinal) {
      run.handoff.push({ _tag: "AttemptDiscarded", attempt: attempt.attempt, keep_through });
    }
  });

const setupOf = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  mode: AttemptMode,
): Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor"> => {
  if (mode === "continue") return { mode, request: "continue", calls: run.ledger.calls(), cursor: undefined };
  const { calls, request } = attempt.setup;
  return { mode, request, calls, cursor: mode === "resume" ? attempt.cursor : undefined };
};
