/**
 * Takes a decision and puts it on record before the run acts on it (L8).
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
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

/** A decision, its incident, and whether that is on record. */
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
  yield* run.learned;
  const member = RunSnapshot.memberOf(run);
  const { sharedGroups } = run.shared;
  const sharing = { member, budget: run.budget, now: () => run.now(), stopped: Deferred.await(run.stopped) };
  yield* sharedGroups.breaks(sharing, Tokens.total(RunSnapshot.costOf(run, broken)));
  // In the step that decides: what this response has cost is the group's before another run of it is decided.
  run.shared.groups.broke(member, Tokens.total(RunSnapshot.costOf(run, broken)), run.now());
  const drawn = yield* draws(run, broken);
  return yield* take(run, broken, withinPatience(run, yield* inputOf(run, broken, drawn?.waitMs)), drawn);
});

/** Takes the decision of an input and records it. */
const take = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  input: DecisionInput,
  drawn: Drawn | undefined,
): Effect.fn.Return<RecordedDecision> {
  // From here on a settle is late: these facts are what is decided.
  run.response.decided(broken.attempt, input.failure);
  if (run.stopper === undefined) run.routes?.decided(broken);
  const taken = yield* record(run, broken.attempt, input, { status: "open", drawn });
  yield* run.shared.sharedGroups.decided(RunSnapshot.memberOf(run));
  return taken;
});

/** A decision that is not on record, with a way to record it as it was taken. */
export interface Look {
  readonly decision: Decision;
  /** Records the decision on the very facts that it was taken on. */
  readonly record: Effect.Effect<RecordedDecision>;
}

/**
 * Looks at everything again after a wait, without recording. If the decision is another one by now, it is recorded and acted on as it is:
 * taken again it could be different once more, because the request no longer holds its place.
 *
 * The retry holds its throttle token already, so the throttle is not asked twice.
 */
export const lookAgain = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<Look> =>
  Effect.map(inputOf(run, broken, 0), (input) => ({
    decision: run.policy.decide(input),
    record: take(run, broken, input, undefined),
  }));

/**
 * Records what turned out after an attempt was decided: a tool that settled late. An open question is asked anew on the
 * grown facts; anything else that was done stays done, and the record says what is known now (L1).
 */
export const late = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  failure: Failure,
): Effect.fn.Return<void> {
  run.note(attempt.number, "late_settle");
  if (run.question.grew()) return;
  const facts = () => attempt.facts.snapshot();
  const broken = { attempt, failure, cause: undefined, cursorRefused: true, facts };
  yield* record(run, attempt, yield* inputOf(run, broken, undefined), { status: "late", drawn: undefined });
});

/** Draws the token of a retry from the store, where it would be one that needs a token. A stop ends the wait for it. */
const draws = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<Drawn | undefined> => {
  const { throttle } = run.shared;
  if (!throttle.isShared) return Effect.undefined;
  return Effect.suspend(() => {
    if (!needsToken(run.policy.decide(inputWith(run, broken, 0, 0)))) return Effect.undefined;
    const token = throttle.draw(run.provider.id, run.budget.max_retry_after_ms, () => run.now());
    return Effect.raceFirst(token, Effect.as(Deferred.await(run.stopped), undefined));
  });
};

/** A move asks nothing of the throttle. One that waits for its path or for a cooldown goes in its turn there, and needs no token. */
const needsToken = ({ action, route, wait_for }: Decision): boolean =>
  action === "auto_retry_once" && route !== "next" && wait_for === undefined;

/** What a decision takes. A stop from outside is the failure of its stopper, unless a flag of the run says it. */
const inputOf = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  throttleWaitMs: number | undefined,
): Effect.Effect<DecisionInput> => Effect.map(Random.next, (jitter) => inputWith(run, broken, throttleWaitMs, jitter));

/**
 * The input of a decision on a refusal without an announced wait: no time is left of its budget if the wait that the policy would
 * choose is as long as the caller's patience, so that the refusal still reaches the caller. The budget is stored with the incident.
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

/** Says why text that was shown is not gone on with. */
const refused = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): void => {
  const plan = run.seams?.plan() ?? "no_seam";
  if (typeof plan !== "string") return;
  run.note(attempt.number, "seam_refused", plan);
  run.telemetry.seam("refused", plan);
};

/** How an incident is recorded. */
interface Recording {
  readonly status: RunIncident["status"];
  /** The token that the run holds. */
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
  const isTaken = status === "open" && needsToken(decision);
  // Taken in the step that decided: runs that break together must not all see the same free token.
  if (isTaken && drawn === undefined) run.shared.throttle.own.take(run.provider.id, run.now());
  const spare = isTaken || drawn === undefined ? Effect.void : run.shared.throttle.putBack(drawn, () => run.now());
  if (status === "open") {
    const member = RunSnapshot.memberOf(run);
    if (RetryBudget.isCounted(decision, input)) run.shared.groups.take(member, run.now());
    else run.shared.groups.giveBack(member);
  }
  run.note(attempt.number, "decision", decision.rule);
  if (decision.rule === "text_shown" && run.options.continueText === "auto") refused(run, attempt);
  run.telemetry.decided(incident);
  const written = run.write([
    ...run.takesRepeats(),
    { _tag: "FactsRaised", attempt: attempt.number, facts: attempt.facts.snapshot() },
    { _tag: "IncidentOpened", incident },
  ]);
  return Effect.map(Effect.andThen(spare, written), (recorded) => ({ decision, incident, recorded }));
};
