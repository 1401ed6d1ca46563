/**
 * Launches the next attempt of a run: withdraws or keeps what the last one showed, and puts the start on record first.
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
import { drained } from "./Waits.ts";

/**
 * The outcome of an act: an attempt that reads, the end of the run, or another decision. `again`: it is still to be taken.
 * `RecordedDecision`: it was taken after a wait and is on record.
 */
export type Next<P> = Attempt<P> | "ended" | "again" | RecordedDecision;

/** A mode of the policy, or `restart`: a person's retry asks for the response from its start, also where attempts resumed it. */
type LaunchMode = Exclude<AttemptMode, "first"> | "restart";

/**
 * Launches an attempt.
 *
 * @param mode `replay` repeats the broken attempt's own request (L3), `continue` builds on what has settled, `resume`
 *   goes on in the very same response
 * @param incident the recorded decision that this acts on
 * @returns `again` when the run was stopped while its tools or its store were awaited: then nothing is launched
 */
export const launch = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  mode: LaunchMode,
  incident: RunIncident,
): Effect.fn.Return<Next<P>> {
  const chain = run.chain ?? new Chain(broken.attempt);
  const ready = yield* prepared(run, chain, broken, mode, incident);
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
  goesOn(run, broken, setup.request === "resume");
  const inResponse = setup.request === "resume" || setup.seam !== undefined;
  if (inResponse) run.response.resumes(next, broken.attempt);
  else run.response.begins(next);
  if (!inResponse) run.seams?.begins(setup.mode === "continue");
  else if (setup.seam !== undefined && setup.mode === "continue") run.seams?.goesOn(broken);
  else if (setup.seam !== undefined && setup.mode === "replay") run.seams?.repeats();
  const started = RunSnapshot.startedOf(run, next);
  // Withdrawn only now that the next attempt is certain: a run that ends here keeps what it showed.
  run.handoff.push(...(run.discardable ? discards : []), started);
  if (setup.mode === "replay") run.telemetry.discarded(inResponse ? [broken.attempt] : chain.links);
  run.start(next);
  return next;
});

/** Counts what the broken response has cost, unless the next attempt goes on in it. */
const goesOn = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, inResponse: boolean): void => {
  run.shared.groups.went(RunSnapshot.memberOf(run), inResponse, run.now());
  run.shared.sharedGroups.went(RunSnapshot.memberOf(run));
  if (inResponse) return;
  const cost = RunSnapshot.costOf(run, broken);
  run.spending.gaveUp(cost);
  run.telemetry.paid("wasted", cost);
};

interface Prepared<P> {
  readonly setup: Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor"> &
    Partial<Pick<AttemptSetup<P>, "seam">>;
  /** What the caller has to throw away. */
  readonly discards: ReadonlyArray<AttemptDiscarded>;
  /** Parts of the same response that are still held back. */
  readonly carried: Carried<P> | undefined;
}

/** Seals or opens the fences, and says which request the next attempt sends and what becomes of the parts so far. */
const prepared = Effect.fnUntraced(function* <P, E, R>(
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
  if (mode === "continue") return yield* continued(run, chain, incident);
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
  // Asked from its start it is another response: a cursor of the one before would skip what has just been withdrawn.
  const from = first.request === "resume" ? first.cursor : undefined;
  const setup = { mode: "replay", request: first.request, calls: first.calls, cursor: from } as const;
  return { setup, discards: withdraw(chain), carried: undefined };
});

const withdraw = <P>(chain: Chain<P>): ReadonlyArray<AttemptDiscarded> => {
  chain.seal();
  chain.discardFrozen();
  return chain.withdrawn();
};

/** What the request of a continuation goes on with: what has settled, and text that is open where a seam can be proven. */
const continued = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  chain: Chain<P>,
  { facts, run: asked }: RunIncident,
): Effect.fn.Return<Prepared<P> | "again"> {
  const { seams } = run;
  const isOpen = RunSnapshot.isTextOpen(facts);
  if (isOpen && typeof seams?.plan() === "object") {
    // Nothing is handed over while the reader is away (L4): the continuation goes on behind what the reader has.
    if (run.isAway) chain.discardFrozen();
    // Only whole text may stand in front of a seam: what was frozen behind its first call is dropped.
    for (const link of chain.links) yield* Ending.handOverText(run, link);
    yield* ranAtFence(run, chain);
    if (run.stopper !== undefined) return "again";
    // What was handed over just now is a part of the text.
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
  // The policy has relied on a seam, and there is none any more.
  if (isOpen && asked.continue_text === "auto") return "again";
  // Such a caller would read on in the middle of a text behind a call that it was not handed: the continuation says that text anew.
  if (!isOpen && !run.discardable) for (const link of chain.links) link.flow.dropOpen();
  const discards = yield* keepSettled(run, chain);
  const setup = { mode: "continue", request: "continue", calls: run.ledger.calls(), cursor: undefined } as const;
  return { setup, discards, carried: undefined };
});

/** The client has begun to read the response. */
const begun = { parts: [], observations: [], begun: true } as const;

/** Hands over what was frozen and lets waiting calls run to their end; a continuation then drops what is left open. */
const keepSettled = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, chain: Chain<P>) {
  if (run.isAway) chain.discardFrozen();
  // A caller that cannot discard must not receive calls that the continuation would leave open (L4).
  for (const link of chain.links) yield* Ending.handOverFrozen(run, link, !run.discardable);
  yield* ranAtFence(run, chain);
  return chain.leftOpen();
});

/** Lets calls that waited at the fence pass it and run to their end; then it is sealed. */
const ranAtFence = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, chain: Chain<P>) {
  chain.open();
  yield* Effect.yieldNow;
  yield* drained(run);
  chain.seal();
});
