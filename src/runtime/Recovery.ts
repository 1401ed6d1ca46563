/**
 * Recovers a run after an attempt has ended: the one loop of the project.
 *
 * Its order is the law: what the attempt did is read, the decision is taken and recorded, and only then acted on (L8).
 * After every wait everything is looked at again, and nothing is done that the newest decision does not say.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import { atMost } from "../policy/FactsOrder.ts";
import * as RetryBudget from "../policy/RetryBudget.ts";
import * as Situation from "../policy/Situation.ts";
import type { Outcome } from "./AttemptEnd.ts";
import type { Attempt } from "./AttemptRunner.ts";
import { Book } from "./Book.ts";
import type { Broken, Verdict } from "./Broken.ts";
import { doubled } from "./Clocks.ts";
import { drained } from "./Drain.ts";
import * as Ending from "./Ending.ts";
import { judge, lookAgain } from "./Incidents.ts";
import { launch } from "./Launch.ts";
import { freshCounters, type Run } from "./Run.ts";
import type { Question } from "./UserDecisions.ts";

/** `again`: a wait was cut short or the facts have grown, so the decision has to be taken anew. */
type Next = "launched" | "ended" | "again";

/**
 * Settles an attempt that has ended: completes the run, launches its next attempt, or ends it.
 *
 * @param outcome how the attempt ended; everything of it is frozen already
 */
export const settle = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  outcome: Outcome,
): Effect.Effect<void, never, R> =>
  settled(run, attempt, outcome).pipe(
    // A defect of ours or of a service must end the run: nobody else would, and its caller would wait for ever.
    Effect.catchCause((cause) => Ending.collapse(run, attempt, cause)),
  );

const settled = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, outcome: Outcome): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const closed = yield* beginClose(run, attempt);
    let next: Next = "again";
    const broken = brokenBy(run, attempt, outcome);
    if (broken === undefined) next = yield* Ending.complete(run, attempt, undefined);
    else yield* drained(run);
    while (broken !== undefined && next === "again") {
      if (run.stopper === "consumer_finished") next = yield* Ending.consumerFinished(run, attempt);
      else next = yield* act(run, broken, yield* judge(run, broken), closed);
      // What is decided anew may be a question: nobody keeps a retry's place while a person thinks.
      if (next === "again") run.answered();
    }
    if (next === "launched") return;
    yield* closed;
    Deferred.doneUnsafe(run.done, Effect.void);
  });

/** What broke, or undefined when the attempt is complete: a clean end after the provider's own marker (law L5). */
const brokenBy = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>, outcome: Outcome): Broken<P> | undefined => {
  const own = attempt.facts.snapshot();
  const nothing = own.progress === "none" || own.progress === "started";
  const broken = (failure: Failure, cause: unknown): Broken<P> => ({
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
  if (outcome.failure.kind === "stalled") run.clocks = doubled(run.clocks, outcome.failure.clock);
  const { chain } = run;
  const refused = attempt.setup.request === "resume" && nothing && outcome.failure.kind === "rejected";
  if (!refused || run.brokeFirst === undefined) {
    const found = broken(outcome.failure, outcome.cause);
    if (attempt === chain?.first) run.brokeFirst = found;
    return found;
  }
  // A refused cursor says nothing about the response: that is decided as a whole, on what interrupted it first.
  return { ...run.brokeFirst, cursorRefused: true, facts: () => chain?.facts() ?? own };
};

/** Starts to close the attempt; the effect that is given back waits until it has closed or was abandoned (law L6). */
const beginClose = <P, E, R>(run: Run<P, E, R>, attempt: Attempt<P>): Effect.Effect<Effect.Effect<void>> =>
  Effect.gen(function* () {
    const closed = Deferred.makeUnsafe<void>();
    yield* Effect.forkDetach(
      Effect.flatMap(attempt.close(), (inTime) => {
        if (!inTime) {
          run.note(attempt.attempt, "abandoned");
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
  broken: Broken<P>,
  verdict: Verdict,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> => {
  const { decision, recorded } = verdict;
  switch (decision.action) {
    case "do_not_retry":
      return decision.rule === "already_complete"
        ? Ending.complete(run, broken.attempt, broken.failure)
        : Ending.stop(run, broken, verdict, "do_not_retry");
    case "ask_user":
      // Nobody is asked for a run that was stopped from outside.
      return run.stopper === undefined
        ? ask(run, broken, verdict, closed)
        : Ending.stop(run, broken, verdict, "do_not_retry");
    case "auto_retry_once":
      return recorded ? retry(run, broken, verdict, closed) : Ending.stop(run, broken, verdict, "record_failed");
  }
};

const retry = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  { decision, incident }: Verdict,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    const mode = decision.mode === undefined || decision.mode === "first" ? "replay" : decision.mode;
    run.handoff.push({
      _tag: "RetryScheduled",
      attempt: broken.attempt.attempt,
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
    run.counters.elapsed += decision.delay_ms;
    spend(run, broken, mode);
    return yield* launch(run, broken, mode, incident);
  });

/** Counts a retry where the budget will look for it. */
const spend = <P, E, R>(run: Run<P, E, R>, broken: Broken<P>, mode: string): void => {
  const facts = broken.facts();
  const situation = Situation.make({
    facts,
    failure: broken.failure,
    run: run.facts(broken.attempt, !broken.cursorRefused),
    budget: run.budget,
    jitter: 0,
  });
  if (RetryBudget.free(situation)) {
    run.counters.not_processed_retries += 1;
    return;
  }
  run.counters.auto_retries += 1;
  if (mode === "replay" && facts.shown !== "nothing") run.counters.retries_after_shown += 1;
  if (mode === "replay" && broken.failure.kind === "stalled") run.counters.retries_after_stall += 1;
};

/** Renews the credentials; the try counts, whether it worked or not. A stop does not wait for it. */
const refreshed = <P, E, R>(run: Run<P, E, R>): Effect.Effect<boolean, never, R> => {
  run.counters.credential_refreshes += 1;
  const refresh = run.options.refreshCredentials ?? Effect.void;
  return Effect.raceFirst(Effect.as(refresh, true), Effect.as(Deferred.await(run.stopped), false)).pipe(
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.logWarning("credentials could not be refreshed", { run_id: run.runId }, cause.reasons.length),
        false,
      ),
    ),
  );
};

const ask = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  verdict: Verdict,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    const { decision, incident, recorded } = verdict;
    // From here on a late settle wakes us; one that came while the incident was written shows in the facts.
    run.factsGrew = Deferred.makeUnsafe<void>();
    run.asking = true;
    if (!atMost(broken.facts(), incident.facts)) return "again";
    run.questions += 1;
    const choices = decision.choices ?? ["stop"];
    const question: Question = {
      run_id: run.runId,
      revision: run.questions,
      incident: incident.id,
      rule: decision.rule,
      message: incident.message,
      choices,
      default_choice: decision.default_choice ?? "stop",
      decision,
    };
    const { revision } = question;
    const book = new Book(run, recorded ? [] : [{ _tag: "IncidentOpened", incident }]);
    yield* book.write({
      _tag: "QuestionAsked",
      question: { revision, incident: incident.id, rule: decision.rule, choices },
    });
    if (Deferred.isDoneUnsafe(run.factsGrew)) return "again";
    run.handoff.push({ _tag: "QuestionAsked", question });
    run.telemetry.asking(incident);
    const answer = yield* answered(run, question);
    run.asking = false;
    // An answer is refused when the facts have grown since it was asked for, also in the same step.
    if (answer === undefined || Deferred.isDoneUnsafe(run.factsGrew)) return "again";
    const choice = choices.includes(answer) ? answer : "stop";
    run.note(broken.attempt.attempt, "answer", choice);
    const noted = yield* book.write(
      { _tag: "QuestionAnswered", revision, answer: choice },
      { _tag: "IncidentMarked", incident: incident.id, status: "acted_on", answer: choice },
    );
    run.handoff.push({ _tag: "QuestionAnswered", revision, choice });
    return yield* carryOut(run, broken, { decision, incident, recorded: noted }, choice, closed);
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        run.asking = false;
      }),
    ),
  );

/** The answer, or undefined when the run is stopped or the facts have grown meanwhile. */
const answered = <P, E, R>(run: Run<P, E, R>, question: Question): Effect.Effect<Choice | undefined> => {
  const outrun = Effect.raceFirst(Deferred.await(run.stopped), Deferred.await(run.factsGrew));
  return Effect.raceFirst(run.shared.decisions.ask(question), Effect.as(outrun, undefined));
};

const carryOut = <P, E, R>(
  run: Run<P, E, R>,
  broken: Broken<P>,
  verdict: Verdict,
  choice: Choice,
  closed: Effect.Effect<void>,
): Effect.Effect<Next, never, R> =>
  Effect.gen(function* () {
    if (choice === "stop") return yield* Ending.stop(run, broken, verdict, "stopped");
    if (choice === "accept") return yield* Ending.acceptPartial(run, broken, verdict);
    // What follows acts on the answer, so the answer and what it answers have to be on record (law L8).
    if (!verdict.recorded) return yield* Ending.stop(run, broken, verdict, "record_failed");
    switch (choice) {
      case "it_ran":
      case "it_did_not_run": {
        const owners = run.chain?.links ?? [broken.attempt];
        // A word that settles nothing (rows that were folded) would be asked for again without end.
        if (run.ledger.settleBy(owners, choice) === 0) return yield* Ending.stop(run, broken, verdict, "stopped");
        for (const owner of owners) yield* run.recordFacts(owner);
        // Without a continuation the person's word only settles the call; what may be done now is decided anew.
        if (run.options.canContinue !== true) return "again";
        break;
      }
      case "retry":
        run.counters = freshCounters();
        yield* waited(run, broken.failure.retry_after_ms ?? 0);
        break;
      case "continue":
        break;
    }
    yield* closed;
    yield* admitted(run);
    if (run.stopper !== undefined) return "again";
    return yield* launch(run, broken, choice === "retry" ? restart(run) : "continue", verdict.incident);
  });

/** A person's retry starts the response from its start, unless a caller that cannot discard was handed some of it: then the broken attempt's own request is repeated. */
const restart = <P, E, R>(run: Run<P, E, R>): "restart" | "replay" =>
  run.discardable || run.chain?.links.every((link) => link.flow.ordinal === 0) !== false ? "restart" : "replay";

/** Waits for a place among the provider's unanswered retries, at most until somebody stops the run. */
const admitted = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> => {
  const entered = run.shared.gate.enter(run.options.provider.id, (leave) => {
    run.leaveGate = leave;
  });
  return Effect.raceFirst(entered, Deferred.await(run.stopped));
};

/** Waits, at most until somebody stops the run. */
const waited = <P, E, R>(run: Run<P, E, R>, ms: number): Effect.Effect<void> =>
  ms <= 0 ? Effect.void : Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(run.stopped));
