/**
 * Launches the next attempt of a run: withdraws or keeps the parts of the last one, and records the start first.
 */
import * as Effect from "effect/Effect";
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptSetup } from "../attempt/AttemptHost.ts";
import type { Carried } from "../attempt/Reveal.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";
import { type BrokenAttempt, Chain } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import * as RunSnapshot from "../run/RunSnapshot.ts";
import * as Ending from "./Ending.ts";
import type { RecordedDecision } from "./Incidents.ts";
import { awaitDrain } from "./Waits.ts";

/**
 * The result of acting on a decision: a started attempt, the end of the run, or another decision. `again`: the decision still has to be
 * taken. `RecordedDecision`: it was taken after a wait and is on record.
 */
export type Next<P> = Attempt<P> | "ended" | "again" | RecordedDecision;

/** A mode of the policy, or `restart`. A restart requests the response from its start, even if attempts have resumed it. */
type LaunchMode = Exclude<AttemptMode, "first"> | "restart";

/**
 * Launches an attempt.
 *
 * @param mode `replay` repeats the broken attempt's own request (L3), `continue` builds on what has settled, `resume` continues
 *   the same response
 * @param incident the recorded decision to act on
 * @returns `again` if the run was stopped while waiting for its tools or its store; nothing is launched then
 */
export const launch = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  mode: LaunchMode,
  incident: RunIncident,
): Effect.fn.Return<Next<P>> {
  const chain = run.chain ?? new Chain(broken.attempt);
  const ready = yield* prepare(run, chain, broken, mode, incident);
  if (ready === "again" || run.stopper !== undefined) return "again";
  const { carried, discards, setup } = ready;
  run.response.withdraw(discards);
  const next = run.prepare(setup, carried);
  const recorded = yield* run.writeIntent([
    { _tag: "IncidentMarked", incident: incident.id, status: "acted_on" },
    RunSnapshot.startOf(run, next, run.elapsedMs),
  ]);
  if (!recorded) {
    run.dropPrepared();
    if (run.stopper !== undefined) return "again";
    return yield* Ending.stop(run, broken, { decision: incident.decision, incident, recorded }, "record_failed");
  }
  bookBrokenResponse(run, broken, setup.request === "resume");
  const inResponse = setup.request === "resume" || setup.seam !== undefined;
  if (inResponse) run.response.resume(next, broken.attempt);
  else run.response.begin(next);
  run.seams?.onLaunch(setup, broken);
  const started = RunSnapshot.startEvent(run, next);
  // Withdrawn only once the next attempt is certain, because a run that ends earlier keeps the parts that it showed.
  run.handoff.push(...(run.discardable ? discards : []), started);
  if (setup.mode === "replay") run.telemetry.reportDiscarded(inResponse ? [broken.attempt] : chain.links);
  run.start(next);
  return next;
});

/** Books the cost of the broken response, unless the next attempt continues it. */
const bookBrokenResponse = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, inResponse: boolean): void => {
  run.shared.groups.markStarted(RunSnapshot.memberOf(run), inResponse, run.now());
  run.shared.sharedGroups.markStarted(RunSnapshot.memberOf(run));
  if (inResponse) return;
  const cost = RunSnapshot.costOf(run, broken);
  run.spending.addAbandonedCost(cost);
  run.telemetry.reportCost("wasted", cost);
};

interface Prepared<P> {
  readonly setup: Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor"> &
    Partial<Pick<AttemptSetup<P>, "seam">>;
  /** Parts that the caller must discard. */
  readonly discards: ReadonlyArray<AttemptDiscarded>;
  /** Parts of the same response that are still held. */
  readonly carried: Carried<P> | undefined;
}

/** Blocks or releases the tool calls at their fences, chooses the next request, and decides what happens to the parts so far. */
const prepare = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  chain: Chain<P>,
  { attempt, cursorRefused }: BrokenAttempt<P>,
  mode: LaunchMode,
  incident: RunIncident,
): Effect.fn.Return<Prepared<P> | "again"> {
  const { calls, carried, cursor, request, seam } = attempt.setup;
  if (mode === "resume") {
    const carried = yield* Ending.handOverResumed(run, attempt);
    chain.open();
    return { setup: { mode, request: "resume", calls, cursor: attempt.cursor }, discards: [], carried };
  }
  if (mode === "continue") return yield* prepareContinuation(run, chain, incident);
  if (mode === "replay" && request === "resume" && !cursorRefused) {
    const discards = withdraw(new Chain(attempt));
    chain.open();
    return { setup: { mode, request, calls, cursor }, discards, carried };
  }
  if (mode === "replay" && seam !== undefined) {
    const discards = withdraw(new Chain(attempt));
    return { setup: { mode, request, calls, cursor: undefined, seam }, discards, carried };
  }
  const first = chain.first.setup;
  // A replay starts a new response. An earlier cursor would skip the parts that were just withdrawn.
  const from = first.request === "resume" ? first.cursor : undefined;
  const setup = { mode: "replay", request: first.request, calls: first.calls, cursor: from } as const;
  return { setup, discards: withdraw(chain), carried: undefined };
});

const withdraw = <P>(chain: Chain<P>): ReadonlyArray<AttemptDiscarded> => {
  chain.seal();
  chain.discardFrozen();
  return chain.allDiscards();
};

/** Prepares a continuation: from settled calls, and from open text if a seam can be proven. */
const prepareContinuation = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  chain: Chain<P>,
  { facts, run: asked }: RunIncident,
): Effect.fn.Return<Prepared<P> | "again"> {
  const { seams } = run;
  const isOpen = RunSnapshot.isTextOpen(facts);
  if (isOpen && typeof seams?.plan() === "object") {
    // Nothing is handed over while the reader is away (L4). So the continuation follows the text that the reader already has.
    if (run.isAway) chain.discardFrozen();
    // Only text may precede a seam, so the frozen parts from the first call on are dropped.
    for (const link of chain.links) yield* Ending.handOverText(run, link);
    yield* runFencedCalls(run, chain);
    if (run.stopper !== undefined) return "again";
    // Planned again, because the text just handed over is included.
    const seam = seams.plan();
    if (typeof seam === "object") {
      const setup = {
        mode: "continue",
        request: "continue",
        calls: run.ledger.calls(),
        cursor: undefined,
        seam,
      } as const;
      return { setup, discards: [], carried: begun };
    }
  }
  // The policy relied on a seam that can no longer be planned.
  if (isOpen && asked.continue_text === "auto") return "again";
  // Drop the frozen parts from the first call on, because the continuation repeats them. A caller that cannot discard would have them
  // twice.
  if (!isOpen && !run.discardable) for (const link of chain.links) link.flow.dropOpen();
  const discards = yield* keepSettled(run, chain);
  const setup = { mode: "continue", request: "continue", calls: run.ledger.calls(), cursor: undefined } as const;
  return { setup, discards, carried: undefined };
});

/** Carried state of a response that the reader has begun to read, with no part held. */
const begun = { parts: [], observations: [], begun: true } as const;

/** Hands over frozen parts and lets waiting calls finish. Parts after the last settled call are then discarded. */
const keepSettled = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, chain: Chain<P>) {
  if (run.isAway) chain.discardFrozen();
  // A caller that cannot discard must not receive calls that the continuation would leave open (L4).
  for (const link of chain.links) yield* Ending.handOverFrozen(run, link, !run.discardable);
  yield* runFencedCalls(run, chain);
  return chain.discardsAfterKept();
});

/** Lets calls that wait at the fence pass and finish, then seals it. */
const runFencedCalls = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, chain: Chain<P>) {
  chain.open();
  yield* Effect.yieldNow;
  yield* awaitDrain(run);
  chain.seal();
});
