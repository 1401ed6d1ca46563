/**
 * Recovers a run after an attempt has ended: the one loop of the project.
 *
 * Its order is the law: what the attempt did is read, the decision is taken and recorded, and only then acted on (L8).
 * After every wait everything is looked at again, and nothing is done that the newest decision does not say.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Failure } from "../../domain/Failure.ts";
import * as RetryBudget from "../../policy/RetryBudget.ts";
import { asksWhetherItRan, runAfter } from "../../policy/Rules.ts";
import * as Situation from "../../policy/Situation.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptEnd } from "../attempt/AttemptEnd.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import * as RunSnapshot from "../run/RunSnapshot.ts";
import { ask, askAgain, carryOut, type Next } from "./Asking.ts";
import * as Ending from "./Ending.ts";
import type { RecordedDecision } from "./Incidents.ts";
import { judge, lookAgain } from "./Incidents.ts";
import { launch } from "./Launch.ts";
import type { Revived } from "./Revival.ts";
import { verified } from "./Verify.ts";
import { abandonable, admitted, drained, waited } from "./Waits.ts";

/**
 * Settles an attempt that has ended: completes the run, launches its next attempt, or ends it.
 *
 * @param outcome how the attempt ended; everything of it is frozen already
 */
export const settle = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  outcome: AttemptEnd,
): Effect.Effect<void, never, R> =>
  settled(run, attempt, outcome).pipe(
    // A defect of ours or of a service must end the run: nobody else would, and its caller would wait for ever.
    Effect.catchCause((cause) => Ending.collapse(run, attempt, cause)),
  );

const settled = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, outcome: AttemptEnd): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const closed = yield* beginClose(run, attempt);
    yield* attempt.flow.written;
    const broken = brokenBy(run, attempt, outcome);
    let next: Next;
    if (broken === undefined) next = yield* Ending.complete(run, attempt, undefined);
    else {
      yield* drained(run);
      next = yield* decided(run, broken, "again", closed);
    }
    if (next === "launched") return;
    yield* closed;
    Deferred.doneUnsafe(run.done, Effect.void);
  });

/** Decides and acts until something has started or ended. */
const decided = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  first: Next,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    let next = first;
    while (next === "again") {
      if (run.stopper === "consumer_finished") next = yield* Ending.consumerFinished(run, broken.attempt);
      else {
        yield* wholeAnyway(run, broken);
        next = yield* act(run, broken, yield* judge(run, broken), closed);
      }
      // What is decided anew may be a question: nobody keeps a retry's place while a person thinks.
      if (next === "again") run.responded();
    }
    return next;
  });

/** An answer that lacks its protocol's last event alone is whole, where it may not be asked for again. */
const wholeAnyway = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!broken.attempt.awaitsLast) return;
    const { action } = yield* lookAgain(run, broken);
    if (action !== "auto_retry_once") broken.attempt.countMarker();
  });

/** Goes on with a run of an earlier process: with what its record says is due, or with a new decision. */
export const revive = <P, E, R>(run: Run<P, E, R>, revived: Revived<P>): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const { broken } = revived;
    const next = yield* decided(run, broken, yield* due(run, revived), Effect.void);
    if (next !== "launched") Deferred.doneUnsafe(run.done, Effect.void);
  }).pipe(Effect.catchCause((cause) => Ending.collapse(run, revived.broken.attempt, cause)));

const due = <P, E, R>(run: Run<P, E, R>, { broken, due: it }: Revived<P>): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    if (it === undefined) return "again";
    const { incident } = it;
    const verdict: RecordedDecision = { decision: incident.decision, incident, recorded: true };
    run.response.decided(broken.attempt, broken.failure);
    if (it._tag === "offered") return yield* act(run, broken, verdict, Effect.void);
    if (it._tag === "answered") {
      run.handoff.push({ _tag: "QuestionAnswered", revision: it.question.revision, choice: it.choice });
      return yield* carryOut(run, broken, verdict, it.choice, Effect.void);
    }
    if (yield* verified(run, broken)) return "again";
    return yield* askAgain(run, broken, incident, it.question);
  });

/** What broke, or undefined when the attempt is complete: a clean end after the provider's own marker (law L5). */
const brokenBy = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  outcome: AttemptEnd,
): BrokenAttempt<P> | undefined => {
  const own = attempt.facts.snapshot();
  const nothing = own.progress === "none" || own.progress === "started";
  const broken = (failure: Failure, cause: unknown): BrokenAttempt<P> => ({
    attempt,
    failure,
    cause,
    cursorRefused: false,
    facts: () => attempt.facts.snapshot(),
  });
  if (outcome._tag === "ended") {
    if (!own.terminal_seen) return broken({ kind: "truncated" }, undefined);
    return nothing && run.options.emptyIsFailure === true ? broken({ kind: "empty" }, undefined) : undefined;
  }
  const { brokeFirst, chain } = run.response;
  const refused = attempt.setup.request === "resume" && nothing && outcome.failure.kind === "rejected";
  if (!refused || brokeFirst === undefined) {
    const found = broken(outcome.failure, outcome.cause);
    run.response.broke(found);
    return found;
  }
  // A refused cursor says nothing about the response: that is decided as a whole, on what interrupted it first.
  return { ...brokeFirst, cursorRefused: true, facts: () => chain?.facts() ?? own };
};

/** Starts to close the attempt; the effect that is given back waits until it has closed or was abandoned (law L6). */
const beginClose = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<Effect.Effect<void>> =>
  Effect.gen(function* () {
    const closed = Deferred.makeUnsafe<void>();
    yield* Effect.forkDetach(
      Effect.flatMap(attempt.close(), (inTime) => {
        if (!inTime) {
          run.note(attempt.number, "abandoned");
          run.telemetry.abandoned(attempt);
        }
        return Deferred.succeed(closed, undefined);
      }),
      { startImmediately: true },
    );
    return Deferred.await(closed);
  });

const act = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  verdict: RecordedDecision,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> => {
  const { decision, incident, recorded } = verdict;
  // No retry after all (no record of it, L8, or no place for it): what lacks its protocol's last event alone is whole then.
  if (!(decision.action === "auto_retry_once" && recorded) && broken.attempt.countMarker())
    return Effect.succeed("again");
  switch (decision.action) {
    case "do_not_retry":
      if (runAfter(decision.rule) === "completed") return Ending.complete(run, broken.attempt, broken.failure);
      // Its caller left it without a word (a shutdown, a lost race): a process that has its request may go on with it.
      return runAfter(decision.rule) === "left" && run.shared.recorder.durable && run.canBeTakenUp
        ? Ending.park(run, broken, incident, "interrupted")
        : Ending.stop(run, broken, verdict, "do_not_retry");
    case "ask_user":
      // Nobody is asked for a run that was stopped from outside.
      return run.stopper === undefined
        ? askOrVerify(run, broken, verdict, closed)
        : Ending.stop(run, broken, verdict, "do_not_retry");
    case "auto_retry_once":
      return Effect.flatMap(recorded ? Effect.succeed(true) : run.writeFirst([]), (isOnRecord) => {
        if (isOnRecord) return retry(run, broken, verdict, closed);
        if (run.stopper !== undefined) return Effect.succeed("again" as const);
        return Ending.stop(run, broken, verdict, "record_failed");
      });
  }
};

/** A tool that can say whether its call happened is asked before a person is. */
const askOrVerify = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  verdict: RecordedDecision,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  asksWhetherItRan(verdict.decision.rule)
    ? Effect.flatMap(verified(run, broken), (settled) =>
        settled ? Effect.succeed("again" as const) : ask(run, broken, verdict, closed),
      )
    : ask(run, broken, verdict, closed);

const retry = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident }: RecordedDecision,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    const mode = decision.mode === undefined || decision.mode === "first" ? "replay" : decision.mode;
    run.handoff.push({
      _tag: "RetryScheduled",
      attempt: broken.attempt.number,
      mode,
      rule: decision.rule,
      delay_ms: decision.delay_ms,
      message: incident.message,
    });
    run.telemetry.retrying(incident);
    yield* waited(run, decision.delay_ms);
    yield* closed;
    yield* admitted(run);
    const newest = yield* lookAgain(run, broken);
    if (newest.action !== "auto_retry_once" || newest.mode !== decision.mode) return "again";
    if (newest.rule === "credentials_refreshed" && !(yield* refreshed(run))) return "again";
    // Counted only now: a wait must not spend the budget that allowed it.
    run.spending.passed(decision.delay_ms);
    spend(run, broken, mode);
    return yield* launch(run, broken, mode, incident);
  });

/** Counts a retry where the budget will look for it. */
const spend = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, mode: string): void => {
  const facts = broken.facts();
  const situation = Situation.make({
    facts,
    failure: broken.failure,
    run: RunSnapshot.factsOf(run, broken.attempt, !broken.cursorRefused),
    budget: run.budget,
    jitter: 0,
  });
  run.spending.retried({
    isFree: RetryBudget.free(situation),
    isAfterShown: mode === "replay" && facts.shown !== "nothing",
    isAfterStall: mode === "replay" && broken.failure.kind === "stalled",
  });
};

/** Longest that credentials may take to be renewed, in milliseconds; then the failure stands. */
export const refreshMsMax = 30_000;

/** Renews the credentials; the try counts, whether it worked or not. A stop does not wait for it. */
const refreshed = <P, E, R>(run: Run<P, E, R>): Effect.Effect<boolean, never, R> => {
  run.spending.refreshed();
  const { refreshCredentials } = run.options;
  const refresh = abandonable("refreshCredentials", () => refreshCredentials ?? Effect.void);
  return Effect.raceFirst(
    Effect.as(Effect.timeout(refresh, refreshMsMax), true),
    Effect.as(Deferred.await(run.stopped), false),
  ).pipe(
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.logWarning("credentials could not be refreshed", { run_id: run.runId }, cause.reasons.length),
        false,
      ),
    ),
  );
};
