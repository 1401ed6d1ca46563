/**
 * Recovers a run. This is the only retry loop of the project.
 *
 * A run that never breaks needs no recovery fiber and ends in the same step as its attempt. Otherwise one fiber runs the recovery: it
 * settles the end of the first attempt, launches and awaits the next one, settles its end, and so on until the run has ended.
 *
 * The order is fixed: read the facts of the attempt, take and record the decision, and only then act on it (L8). After every wait the fiber
 * decides again, and acts only on the newest decision.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { isEmpty } from "../../facts/EmptyResponse.ts";
import { finishFailure } from "../../failure/tables/FinishWords.ts";
import * as RetryBudget from "../../policy/RetryBudget.ts";
import { isOutcomeQuestion, runStateAfter } from "../../policy/Rules.ts";
import * as Situation from "../../policy/Situation.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import { type AttemptEnd, pathLost } from "../attempt/AttemptEnd.ts";
import { goes } from "../attempt/Departure.ts";
import { runClock } from "../attempt/RunClocks.ts";
import { shouldFailOnEmpty } from "../contract/RunOptions.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import * as RunSnapshot from "../run/RunSnapshot.ts";
import { ask, askAgain, carryOut, isWorthAsking } from "./Asking.ts";
import * as Ending from "./Ending.ts";
import { judge, lookAgain, type RecordedDecision } from "./Incidents.ts";
import { launch, type Next } from "./Launch.ts";
import { onItsPath } from "./PathKnowledge.ts";
import type { Revived } from "./Revival.ts";
import { verifyCalls } from "./Verify.ts";
import { awaitDeparture, awaitDrain, runAbandonable, sleepUnlessStopped } from "./Waits.ts";

/**
 * Settles the end of a first attempt: completes the run in this step if the response is whole and nothing is pending, else starts the
 * recovery fiber.
 */
export const settle = <P, E, R>(run: Run<P, E, R>, first: Attempt<P>, end: AttemptEnd): void => {
  if (isWhole(run, first, end)) Ending.completeThen(run, first, () => Deferred.doneUnsafe(run.done, Effect.void));
  // The fiber is forked only here, in the step that ends the attempt, so no fiber waits while the attempt runs.
  else Effect.runForkWith(run.services)(drive(run, first));
};

/**
 * Returns true if nothing is left to hand over, write, close or decide. If this check throws, the recovery fiber ends the run with the
 * defect.
 */
const isWhole = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, end: AttemptEnd): boolean => {
  if (end._tag !== "ended" || run.ledger.ended || run.loss !== undefined) return false;
  if (attempt.flow.isUnsettled || !attempt.hasClosed) return false;
  try {
    return findBreak(run, attempt, end) === undefined;
  } catch {
    return false;
  }
};

/**
 * Recovers a run from the end of this attempt until the run has ended.
 *
 * @param first an attempt that was started
 */
export const drive = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  first: Attempt<P>,
): Effect.fn.Return<void, never, R> {
  let attempt = first;
  for (;;) {
    const end = yield* attempt.awaitEnd;
    const next = yield* settleFrozen(run, attempt, end);
    if (next === "ended") break;
    attempt = next;
  }
  yield* run.response.awaitClose;
  Deferred.doneUnsafe(run.done, Effect.void);
});

/** Recovers a run of an earlier process, starting with the pending step on its record or from a new decision. */
export const revive = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  revived: Revived<P>,
): Effect.fn.Return<void, never, R> {
  const { broken } = revived;
  const first = Effect.flatMap(carryOutDue(run, revived), (next) =>
    isStarted(next) ? Effect.succeed(next) : decideAndAct(run, broken, next),
  );
  const next = yield* collapseOnDefect(first, run, broken.attempt);
  if (next === "ended") Deferred.doneUnsafe(run.done, Effect.void);
  else yield* drive(run, next);
});

/** Ends the run if its recovery fails with a defect, ours or a service's. The caller would otherwise wait forever. */
const collapseOnDefect = <P, E, R>(next: Effect.Effect<Started<P>, never, R>, run: Run<P, E, R>, attempt: Attempt<P>) =>
  Effect.catchCause(next, (cause) => Effect.as(Ending.collapse(run, attempt, cause), "ended" as const));

/** The final result of a decision: a started attempt or the end of the run. */
type Started<P> = Attempt<P> | "ended";

/** Settles the end of an attempt whose parts are frozen: completes the run, launches the next attempt, or ends the run. */
const settleFrozen = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  end: AttemptEnd,
): Effect.fn.Return<Started<P>, never, R> {
  const isOver = end._tag === "ended";
  if (!isOver) run.response.setClosed(yield* beginClose(run, attempt));
  yield* attempt.flow.awaitWrite;
  const broken = findBreak(run, attempt, end);
  if (broken === undefined) {
    if (isOver) run.response.setClosed(awaitClose(run, attempt));
    return yield* Ending.complete(run, attempt, undefined);
  }
  if (isOver) run.response.setClosed(yield* beginClose(run, attempt));
  // No reader can receive the whole response any more, so nothing is retried and no person is asked.
  if (run.taps?.presence?.isEvicted === true && run.stopper === undefined) run.stop("user");
  const known = yield* onItsPath(run, broken);
  if (run.stopper === undefined) run.routes?.recordFailure(known.failure, attempt.facts.snapshot(), mayRefresh(run));
  run.response.recordPartial(attempt, partialDigest(run, known));
  yield* awaitDrain(run);
  return yield* decideAndAct(run, known);
}, collapseOnDefect);

/**
 * Returns a digest of a broken attempt's content and failure, if it sent the `first` request and its caller has seen nothing of it. A lost
 * path gives no digest, because it says nothing about the response.
 */
const partialDigest = <P, E, R>(
  { options }: Run<P, E, R>,
  { attempt: { flow, setup }, failure }: BrokenAttempt<P>,
): string | undefined => {
  if (setup.request !== "first" || flow.hasShown || failure.code === pathLost) return undefined;
  const said = options.digestOf?.(flow.frozen);
  return said === undefined ? undefined : `${failure.kind} ${failure.code ?? ""} ${said}`;
};

/**
 * Maximum consecutive retries decided for one attempt. Each decision leads to a request unless conditions change during its wait, so this
 * many decisions without a request are a defect. The defect ends the run, because an endless loop could block the whole process.
 */
export const decisionsMax = 100;

/** True for the final result of a decision: a started attempt, or the end of the run. */
const isStarted = <P>(next: Next<P>): next is Started<P> =>
  next === "ended" || (next !== "again" && !("incident" in next));

/**
 * Decides and acts until an attempt has started or the run has ended.
 *
 * @param first a decision that is already on record
 */
const decideAndAct = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  first: "again" | RecordedDecision = "again",
): Effect.fn.Return<Started<P>, never, R> {
  let next = first;
  let retries = 0;
  for (;;) {
    // The next step may be a question, and a run that waits for a person must not occupy a retry's place.
    run.onResponse();
    if (run.stopper === "consumer_finished") return yield* Ending.finishForConsumer(run, broken.attempt);
    const isLate = next === "again" && (yield* isOutOfTime(run, broken));
    const known = isLate ? { ...broken, failure: runClock } : broken;
    if (next === "again") yield* acceptWithoutLast(run, known);
    const taken = next === "again" ? yield* judge(run, known) : next;
    // Only retries are counted, because a question is asked again whenever its facts grow.
    retries = taken.decision.action === "auto_retry_once" ? retries + 1 : 0;
    if (retries > decisionsMax) return yield* Effect.die(new Error(endlessWords(run.runId)));
    const found = yield* act(run, known, taken);
    if (isStarted(found)) return found;
    next = found;
  }
});

const endlessWords = (runId: string): string =>
  `run ${runId}: more than ${decisionsMax} retry decisions about one attempt led to no request; the run was ended`;

/**
 * Returns true if only the run's own clock prevents its next attempt. If anything else ends the run, its own failure is kept
 * (L12).
 */
const isOutOfTime = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<boolean> =>
  run.clocks.leftMs > 0 || run.stopper !== undefined
    ? Effect.succeed(false)
    : Effect.map(lookAgain(run, broken), ({ decision }) => decision.action === "auto_retry_once");

/**
 * Accepts a response that lacks only its protocol's last event, if the response may not be requested again. If a second response of the run
 * also ends unbroken without that event, the server does not send the event, and a retry would pay for the same result.
 */
const acceptWithoutLast = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>) {
  const { attempt, failure } = broken;
  if (!attempt.isAwaitingLast) return;
  if (failure.kind !== "transport" && run.response.recordMissingLast(attempt)) return void attempt.countMarker();
  const { decision } = yield* lookAgain(run, broken);
  if (decision.action !== "auto_retry_once") attempt.countMarker();
});

/** Carries out the pending step on the record of a revived run. */
const carryOutDue = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  { broken, due: it }: Revived<P>,
): Effect.fn.Return<Next<P>, never, R> {
  if (it === undefined) return "again";
  const { incident } = it;
  const taken: RecordedDecision = { decision: incident.decision, incident, recorded: true };
  run.response.noteDecision(broken.attempt, broken.failure);
  switch (it._tag) {
    case "offered":
      return yield* act(run, broken, taken);
    case "answered":
      run.handoff.push({ _tag: "QuestionAnswered", revision: it.question.revision, choice: it.choice });
      return yield* carryOut(run, broken, taken, it.choice);
    case "waiting":
      if (yield* verifyCalls(run, broken)) return "again";
      return yield* askAgain(run, broken, incident, it.question);
  }
});

/** Returns the failure, or undefined if the attempt is complete: a clean end after the provider's own marker (L5). */
const findBreak = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, end: AttemptEnd): BrokenAttempt<P> | undefined => {
  const own = attempt.facts.snapshot();
  const nothing = own.progress === "none" || own.progress === "started";
  const broken = (failure: Failure, cause: unknown): BrokenAttempt<P> => ({
    attempt,
    failure,
    cause,
    cursorRefused: false,
    facts: () => factsOf(attempt),
  });
  if (end._tag === "ended") {
    if (!own.terminal_seen) return broken({ kind: "truncated" }, undefined);
    const failure = finishFailure(attempt.finish, run.options.finishFailures);
    if (failure !== undefined) return broken(failure, undefined);
    return isEmptyFailure(run, attempt) ? broken({ kind: "empty" }, undefined) : undefined;
  }
  // A connection that breaks after the marker does not make a response incomplete. But an empty response is still a failure.
  if (behindMarker.has(end.failure.kind) && isEmptyFailure(run, attempt)) return broken({ kind: "empty" }, end.cause);
  const found = broken(end.failure, end.cause);
  const atSeam = run.seams?.onBreak(found, run);
  if (atSeam !== undefined) return atSeam;
  const { firstBreak, chain } = run.response;
  const refused = attempt.setup.request === "resume" && nothing && end.failure.kind === "rejected";
  if (!refused || firstBreak === undefined) {
    run.response.recordBreak(found);
    return found;
  }
  // A refused cursor says nothing about the response. So the decision covers the whole response and its first interruption.
  return { ...firstBreak, cursorRefused: true, facts: () => chain?.facts() ?? own };
};

/** Parts shown after a seam follow earlier text, so these parts are never requested again as if no text had been shown. */
const factsOf = <P>({ facts, setup }: Attempt<P>): AttemptFacts => {
  const own = facts.snapshot();
  return setup.seam === undefined || own.shown === "nothing" ? own : { ...own, shown: "text" };
};

const behindMarker: ReadonlySet<Failure["kind"]> = new Set(["transport", "stalled", "truncated", "protocol"]);

/** Returns true if the response is empty and its caller treats that as a failure. A resumed response counts as a whole. */
const isEmptyFailure = <P, E, R>({ options, response }: Run<P, E, R>, attempt: Attempt<P>): boolean =>
  shouldFailOnEmpty(options) && isEmpty(response.chain?.facts() ?? attempt.facts.snapshot(), attempt.finish);

/** Waits until an attempt whose source has ended is closed. Nearly always it already is, and no fiber has to be started. */
const awaitClose = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<void> =>
  Effect.suspend(() =>
    attempt.hasClosed ? Effect.void : Effect.andThen(Effect.yieldNow, Effect.flatten(beginClose(run, attempt))),
  );

/** Starts to close the attempt. The returned effect completes when it has closed or was abandoned (L6). */
const beginClose = Effect.fnUntraced(function* <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>) {
  if (attempt.hasClosed) return Effect.void;
  const closed = Deferred.makeUnsafe<void>();
  yield* Effect.forkDetach(
    Effect.flatMap(attempt.close(), (inTime) => {
      if (!inTime) {
        run.note(attempt.number, "abandoned");
        run.telemetry.reportAbandoned(attempt);
      }
      return Deferred.succeed(closed, undefined);
    }),
    { startImmediately: true },
  );
  return Deferred.await(closed);
});

const act = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
): Effect.fn.Return<Next<P>, never, R> {
  const { decision, incident, recorded } = taken;
  // Nothing is retried, because the decision is not a retry or is not on record (L8). A response that lacks only its protocol's last event
  // then counts as complete.
  if (!(decision.action === "auto_retry_once" && recorded) && broken.attempt.countMarker()) return "again";
  switch (decision.action) {
    case "do_not_retry":
      if (runStateAfter(decision.rule) === "completed") {
        return yield* Ending.complete(run, broken.attempt, broken.failure);
      }
      // The caller left without a signature (a shutdown, a lost race), so a process that has the request may continue the run.
      return runStateAfter(decision.rule) === "left" && run.shared.recorder.durable && run.canBeTakenUp
        ? yield* Ending.park(run, broken, incident, "interrupted")
        : yield* Ending.stop(run, broken, taken, "do_not_retry");
    case "ask_user":
      // No question is asked after the run was stopped from outside.
      if (run.stopper !== undefined) return yield* Ending.stop(run, broken, taken, "do_not_retry");
      // A tool that can report the outcome of its call is asked before a person is.
      if (isOutcomeQuestion(decision.rule) && (yield* verifyCalls(run, broken))) return "again";
      if (!isWorthAsking(run, broken, decision)) {
        run.note(broken.attempt.number, "answer", "no_choice_matters");
        return yield* Ending.stop(run, broken, taken, "stopped");
      }
      return yield* ask(run, broken, taken);
    case "auto_retry_once":
      if (recorded || (yield* run.writeFirst([]))) return yield* retry(run, broken, taken);
      if (run.stopper !== undefined) return "again";
      return yield* Ending.stop(run, broken, taken, "record_failed");
  }
});

const retry = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident }: RecordedDecision,
): Effect.fn.Return<Next<P>, never, R> {
  const mode = decision.mode === undefined || decision.mode === "first" ? "replay" : decision.mode;
  run.handoff.push({
    _tag: "RetryScheduled",
    attempt: broken.attempt.number,
    mode,
    rule: decision.rule,
    delay_ms: decision.delay_ms,
    message: incident.message,
  });
  run.telemetry.reportRetry(incident);
  const moves = decision.route === "next";
  const waits = decision.wait_for !== undefined;
  if (!moves && !waits && (yield* inTime(run, sleepUnlessStopped(run, decision.delay_ms))) === "late") return "again";
  yield* run.response.awaitClose;
  const found = moves
    ? goes
    : yield* inTime(run, Effect.raceFirst(awaitDeparture(run, decision), awaitNextRoute(run, broken)));
  if (found === "late" || run.clocks.leftMs === 0) return "again";
  if (decision.wait_for === "path" && found !== "elsewhere" && found._tag === "goes")
    run.departure.setWaitedForPath(true);
  const { decision: newest, record } = yield* lookAgain(run, broken);
  const isSame = newest.action === "auto_retry_once" && newest.mode === decision.mode;
  if (found === "elsewhere" || !isSame || (newest.route === "next") !== moves) return yield* record;
  // A change of route has its own counter and uses none of the retry budget.
  if (moves) return yield* launchOnNextRoute(run, broken, incident);
  if (found._tag === "stays") {
    // The request has used up its waiting time. If the policy knows that and still starts the request, the attempt counts like any other.
    if (newest.wait_for !== undefined && run.departure.forbidWaits()) return "again";
    run.departure.forceRelease();
  }
  if (newest.rule === "credentials_refreshed" && !(yield* renewCredentials(run))) return "again";
  // Counted only now, because the wait must not use up the budget that the decision was based on.
  if (decision.wait_for === undefined) run.spending.addRetryWait(decision.delay_ms);
  spend(run, broken, mode);
  return yield* launch(run, broken, mode, incident);
});

/** Runs a wait of a retry within the run's own clock, and counts its time. */
const inTime = <A, P, E, R>(run: Run<P, E, R>, wait: Effect.Effect<A>): Effect.Effect<A | "late"> => {
  const { clocks } = run;
  if (clocks.leftMs === Number.POSITIVE_INFINITY) return wait;
  return clocks.waiting(Effect.raceFirst(wait, Effect.as(clocks.awaitExpiry, "late" as const)));
};

/**
 * Decides again at intervals until the decision is to change route, because the path may stay down longer than the path of another route.
 */
const awaitNextRoute = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<"elsewhere"> => {
  if (run.routes === undefined) return Effect.never;
  const isNext = Effect.map(lookAgain(run, broken), ({ decision }) => decision.route === "next");
  return Effect.as(run.routes.lookUntil(isNext), "elsewhere");
};

const launchOnNextRoute = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, incident: RunIncident) =>
  Effect.suspend(() => {
    if (run.routes !== undefined) run.switchRoute(run.routes.moveToNext());
    return launch(run, broken, "replay", incident);
  });

/** Counts a retry against its budget. A retry that waited for its path and was not sent is free. */
const spend = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, mode: string): void => {
  const facts = broken.facts();
  const situation = Situation.make({
    facts,
    failure: broken.failure,
    // Counts with the path as up, because a path that goes down after the decision does not make the retry free.
    run: { ...RunSnapshot.factsOf(run, broken.attempt, !broken.cursorRefused), path: "up" },
    budget: run.budget,
    jitter: 0,
  });
  if (RetryBudget.isWaited(situation)) run.spending.forgiveFailure();
  else
    run.spending.countRetry({
      isFree: RetryBudget.isFree(situation),
      isAfterShown: mode === "replay" && facts.shown !== "nothing",
      isAfterStall: mode === "replay" && broken.failure.kind === "stalled",
      isAfterEmpty: mode === "replay" && broken.failure.kind === "empty",
    });
};

/** Returns true if the credentials of the route can be renewed and have not been. */
const mayRefresh = <P, E, R>({ options, spent }: Run<P, E, R>): boolean =>
  options.refreshCredentials !== undefined && spent.credential_refreshes === 0;

/** Maximum time to renew credentials, in milliseconds. After that the failure remains. */
export const refreshMsMax = 30_000;

/** Renews the credentials. A renewal that fails also counts as the run's one renewal. A stop of the run does not wait for the renewal. */
const renewCredentials = <P, E, R>(run: Run<P, E, R>): Effect.Effect<boolean, never, R> => {
  run.spending.countRefresh();
  const { refreshCredentials } = run.options;
  const refresh = runAbandonable("refreshCredentials", () => refreshCredentials ?? Effect.void);
  return Effect.raceFirst(
    Effect.as(Effect.timeout(refresh, refreshMsMax), true),
    Effect.as(Deferred.await(run.stopped), false),
  ).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning("could not refresh credentials", { run_id: run.runId }, cause.reasons.length), false),
    ),
  );
};
