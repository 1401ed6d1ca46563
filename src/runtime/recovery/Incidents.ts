/** Takes decisions and records each decision before the run acts on it (L8). */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Random from "effect/Random";
import type { Decision } from "../../domain/Decision.ts";
import { type Failure, flags } from "../../domain/Failure.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import * as Tokens from "../../facts/Tokens.ts";
import type { DecisionInput } from "../../policy/DecisionInput.ts";
import * as RetryBudget from "../../policy/RetryBudget.ts";
import * as Incident from "../../recorder/Incident.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import { stopFailure } from "../contract/InterruptSignature.ts";
import type { Drawn } from "../pacing/SharedThrottle.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import * as RunSnapshot from "../run/RunSnapshot.ts";

/** A decision and its incident; `recorded` is true if they are on record. */
export interface RecordedDecision {
  readonly decision: Decision;
  readonly incident: RunIncident;
  readonly recorded: boolean;
}

/** Decides a broken attempt and records the incident. */
export const judge = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
): Effect.fn.Return<RecordedDecision> {
  yield* run.reads.within(awaitSpentBefore(run), undefined);
  const member = RunSnapshot.memberOf(run);
  const { sharedGroups } = run.shared;
  const sharing = { member, budget: run.budget, now: () => run.now(), stopped: Deferred.await(run.stopped) };
  yield* run.reads.within(sharedGroups.countBreak(sharing, Tokens.total(RunSnapshot.costOf(run, broken))), undefined);
  // The cost is booked in the step that decides, before another run of the group is decided.
  run.shared.groups.countBreak(member, Tokens.total(RunSnapshot.costOf(run, broken)), run.now());
  const drawn = yield* run.reads.within(drawToken(run, broken), undefined);
  return yield* take(run, broken, withinPatience(run, yield* inputOf(run, broken, drawn?.waitMs)), drawn);
});

/** Waits until the earlier spending is known. If this run stops waiting, the lookup continues, and the next decision uses its result. */
const awaitSpentBefore = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> =>
  Effect.flatMap(Effect.forkDetach(run.earlier.learn, { startImmediately: true }), (fiber) =>
    Effect.asVoid(Fiber.join(fiber)),
  );

const take = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  input: DecisionInput,
  drawn: Drawn | undefined,
): Effect.fn.Return<RecordedDecision> {
  // The decision is based on these facts. A call that settles after this step is late.
  run.response.noteDecision(broken.attempt, input.failure);
  if (run.stopper === undefined) run.routes?.keepFailure(broken);
  const taken = yield* record(run, broken.attempt, input, { status: "open", drawn });
  yield* run.shared.sharedGroups.returnUnusedRetry(RunSnapshot.memberOf(run));
  return taken;
});

/** A decision that is not on record yet, and an effect that records it unchanged. */
export interface Look {
  readonly decision: Decision;
  /** Records the decision with the facts on which it was taken. */
  readonly record: Effect.Effect<RecordedDecision>;
}

/**
 * Decides again after a wait, without recording. If the decision has changed, the caller records and carries out exactly this decision.
 * Deciding once more could give another result, because the request no longer holds its place.
 *
 * The retry already holds its throttle token, so the throttle is not asked again.
 */
export const lookAgain = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<Look> =>
  Effect.map(inputOf(run, broken, 0), (input) => ({
    decision: run.policy.decide(input),
    record: take(run, broken, input, undefined),
  }));

/**
 * Records a call that settled after its attempt was decided. An open question is asked again on the grown facts. Other actions are not
 * undone, but the record contains the new facts (L1).
 */
export const recordLate = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  failure: Failure,
): Effect.fn.Return<void> {
  run.note(attempt.number, "late_settle");
  if (run.question.overtake()) return;
  const factsOf = () => attempt.facts.snapshot();
  const broken = { attempt, failure, cause: undefined, cursorRefused: true, facts: factsOf };
  yield* record(run, attempt, yield* inputOf(run, broken, undefined), { status: "late", drawn: undefined });
});

/** Draws a token from the store if the retry needs one. A stop of the run ends the wait. */
const drawToken = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<Drawn | undefined> => {
  const { throttle } = run.shared;
  if (!throttle.isShared) return Effect.undefined;
  return Effect.suspend(() => {
    if (!isTokenNeeded(run.policy.decide(inputWith(run, broken, 0, 0)))) return Effect.undefined;
    const token = throttle.draw(run.provider.id, run.budget.max_retry_after_ms, () => run.now());
    return Effect.raceFirst(token, Effect.as(Deferred.await(run.stopped), undefined));
  });
};

/**
 * A change of route needs no token. Neither does a retry that waits for its path or a cooldown, because `Paths` releases these requests in
 * turn.
 */
const isTokenNeeded = ({ action, route, wait_for }: Decision): boolean =>
  action === "auto_retry_once" && route !== "next" && wait_for === undefined;

/**
 * Builds the input of a decision. After a stop from outside, the input has the stop as its failure, unless a flag of the run already shows
 * the stop.
 */
const inputOf = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  throttleWaitMs: number | undefined,
): Effect.Effect<DecisionInput> => Effect.map(Random.next, (jitter) => inputWith(run, broken, throttleWaitMs, jitter));

/**
 * Sets the remaining time to zero if the provider refused the request without announcing a wait, and the wait before the retry is at least
 * as long as the caller's `patienceMs`. The refusal then reaches the caller in time. The changed budget is stored with the incident.
 */
const withinPatience = <P, E, R>({ options, policy }: Run<P, E, R>, input: DecisionInput): DecisionInput => {
  const { failure } = input;
  if (failure.kind === "transport" || failure.retry_after_ms !== undefined || !flags(failure).not_processed)
    return input;
  const leftMs = options.patienceMs?.();
  if (leftMs === undefined) return input;
  const { action, delay_ms, route, wait_for } = policy.decide(input);
  const fits = action !== "auto_retry_once" || route === "next" || wait_for === "path" || delay_ms < leftMs;
  if (fits) return input;
  const { budget, run } = input;
  return {
    ...input,
    budget: { ...budget, max_elapsed_ms: Math.min(budget.max_elapsed_ms, Math.floor(run.elapsed_ms)) },
  };
};

const inputWith = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  throttleWaitMs: number | undefined,
  jitter: number,
): DecisionInput => {
  const cost = RunSnapshot.costOf(run, broken);
  const facts = RunSnapshot.factsOf(run, broken.attempt, !broken.cursorRefused, cost);
  return {
    facts: broken.facts(),
    failure: run.stopper === "caller" || run.stopper === "caller_failed" ? stopFailure(run.stopper) : broken.failure,
    run: throttleWaitMs === undefined ? facts : { ...facts, throttle_wait_ms: throttleWaitMs },
    budget: run.departure.budget,
    jitter,
  };
};

/** Records the reason why shown text is not continued. */
const recordSeamRefusal = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): void => {
  const plan = run.seams?.plan() ?? "no_seam";
  if (typeof plan !== "string") return;
  run.note(attempt.number, "seam_refused", plan);
  run.telemetry.reportSeam("refused", plan);
};

interface Recording {
  readonly status: RunIncident["status"];
  readonly drawn: Drawn | undefined;
}

const record = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  input: DecisionInput,
  { drawn, status }: Recording,
): Effect.Effect<RecordedDecision> => {
  const incident = Incident.make(run.policy, input, {
    run_id: run.runId,
    number: run.nextIncident(),
    attempt: attempt.number,
    at: run.shared.clock.currentTimeMillisUnsafe(),
    provider: run.provider,
    status,
  });
  const { decision } = incident;
  const isTaken = status === "open" && isTokenNeeded(decision);
  // The token is taken in the step that decides, so that runs that break together do not all count on the same token.
  if (isTaken && drawn === undefined) run.shared.throttle.own.take(run.provider.id, run.now());
  const spare = isTaken || drawn === undefined ? Effect.void : run.shared.throttle.returnToken(drawn, () => run.now());
  if (status === "open") {
    const member = RunSnapshot.memberOf(run);
    if (RetryBudget.isCounted(decision, input)) run.shared.groups.take(member, run.now());
    else run.shared.groups.returnRetry(member);
  }
  run.note(attempt.number, "decision", decision.rule);
  if (decision.rule === "text_shown" && run.options.continueText === "auto") recordSeamRefusal(run, attempt);
  run.telemetry.reportDecision(incident);
  const written = run.write([
    ...run.earlier.takeRepeatEntries(),
    { _tag: "FactsRaised", attempt: attempt.number, facts: attempt.facts.snapshot() },
    { _tag: "IncidentOpened", incident },
  ]);
  return Effect.map(Effect.andThen(spare, written), (recorded) => ({ decision, incident, recorded }));
};
