/**
 * Launches the next attempt of a run: withdraws or keeps what the last one showed, and puts the start on record first.
 */
import * as Effect from "effect/Effect";
import type { AttemptMode } from "../domain/Run.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import type { AttemptSetup } from "./AttemptRunner.ts";
import type { Broken } from "./Broken.ts";
import { Chain } from "./Chain.ts";
import { drained } from "./Drain.ts";
import * as Ending from "./Ending.ts";
import type { Run } from "./Run.ts";

/** A mode of the policy, or `restart`: a person's retry, from the start of the response whoever resumed it. */
type LaunchMode = Exclude<AttemptMode, "first"> | "restart";

/**
 * Launches an attempt.
 *
 * @param mode `replay` repeats the broken attempt's own request (law L3), `continue` builds on what has settled, `resume`
 *   goes on in the very same response
 * @param incident the recorded decision that this acts on
 * @returns `again` when the run was stopped while its tools were awaited: then nothing is launched
 */
export const launch = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  mode: LaunchMode,
  incident: RunIncident,
): Effect.Effect<"launched" | "ended" | "again"> =>
  Effect.gen(function* () {
    const chain = run.chain ?? new Chain(broken.attempt);
    const setup = yield* prepared(run, chain, broken, mode);
    if (run.stopper !== undefined) return "again" as const;
    const next = run.prepare(setup);
    const recorded = yield* run.write([
      { _tag: "IncidentMarked", incident: incident.id, status: "acted_on" },
      {
        _tag: "AttemptStarted",
        attempt: next.attempt,
        mode: setup.mode,
        at_ms: run.elapsedMs,
        facts: next.facts.snapshot(),
      },
    ]);
    if (!recorded) {
      run.attempts -= 1;
      const verdict = { decision: incident.decision, incident, recorded };
      return yield* Ending.stop(run, broken, verdict, "record_failed");
    }
    run.chain = setup.request === "resume" ? chain.resumedBy(next) : new Chain(next);
    run.handoff.push({ _tag: "AttemptStarted", run_id: run.runId, attempt: next.attempt, mode: setup.mode });
    run.start(next);
    return "launched" as const;
  });

type Setup<P> = Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor">;

/** Withdraws or keeps what was handed over, and says which request the next attempt sends. */
const prepared = <P, E, R>(
  run: Run<P, E, R>,
  chain: Chain<P>,
  { attempt, cursorRefused }: Broken<P>,
  mode: LaunchMode,
): Effect.Effect<Setup<P>> =>
  Effect.gen(function* () {
    switch (mode) {
      case "resume":
        yield* Ending.handOverFrozen(run, attempt, false);
        chain.open();
        return { mode, request: "resume", calls: attempt.setup.calls, cursor: attempt.cursor };
      case "continue":
        yield* keepSettled(run, chain);
        return { mode, request: "continue", calls: run.ledger.calls(), cursor: undefined };
      case "replay":
        if (attempt.setup.request === "resume" && !cursorRefused) {
          withdraw(run, new Chain(attempt));
          chain.open();
          return { ...attempt.setup, mode };
        }
        break;
      case "restart":
        break;
    }
    withdraw(run, chain);
    return { ...chain.first.setup, mode: "replay" };
  });

const withdraw = <P, E, R>(run: Run<P, E, R>, chain: Chain<P>): void => {
  chain.close();
  chain.discardFrozen();
  run.handoff.push(...chain.withdrawn());
};

/** Hands over what was frozen and lets waiting calls run to their end; a continuation then drops what is left open. */
const keepSettled = <P, E, R>(run: Run<P, E, R>, chain: Chain<P>): Effect.Effect<void> =>
  Effect.gen(function* () {
    // Who cannot discard is not handed calls that the continuation would leave open.
    for (const link of chain.links) yield* Ending.handOverFrozen(run, link, !run.discardable);
    chain.open();
    // Calls that waited for the fence pass it now, before it closes for good.
    yield* Effect.yieldNow;
    yield* drained(run);
    chain.close();
    if (run.discardable) run.handoff.push(...chain.leftOpen());
  });
