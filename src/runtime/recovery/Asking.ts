/**
 * Asks a person about decisions that the policy leaves open, and carries out the answer.
 *
 * A question is on record before it is asked, and its answer before the run acts on it (L8). An answer counts only if the facts have not
 * grown since the question.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Choice, Decision } from "../../domain/Decision.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { canGrowInto } from "../../facts/Growth.ts";
import * as Choices from "../../policy/Choices.ts";
import * as Incident from "../../recorder/Incident.ts";
import * as Questions from "../../recorder/Question.ts";
import type { Entry, QuestionRecord } from "../../recorder/RunRecord.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { OpenQuestion } from "../run/OpenQuestion.ts";
import type { Run } from "../run/Run.ts";
import type { OpenCall } from "../tools/ToolLedger.ts";
import * as Ending from "./Ending.ts";
import type { RecordedDecision } from "./Incidents.ts";
import { launch, type Next } from "./Launch.ts";
import { recordVerdict } from "./Verify.ts";
import { awaitDeparture, runAbandonable, sleepUnlessStopped } from "./Waits.ts";

/** Closes the question, no matter how asking ends. */
const withClosing = <A, E, R>(asking: Effect.Effect<A, E, R>, run: AskingRun) =>
  Effect.ensuring(
    Effect.suspend(() => {
      run.beginAsking();
      return asking;
    }),
    Effect.sync(() => {
      run.question.close();
      run.endAsking();
    }),
  );

interface AskingRun {
  readonly question: OpenQuestion;
  readonly beginAsking: () => void;
  readonly endAsking: () => void;
}

/** Asks a new question. If the facts grow in the meantime, the decision is taken again. */
export const ask = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident }: RecordedDecision,
): Effect.fn.Return<Next<P>, never, R> {
  run.question.open();
  if (!canGrowInto(broken.facts(), incident.facts)) return "again";
  const record = Questions.make(incident, {
    revision: run.question.next(),
    attempt: run.attempts,
    choices: choicesOf(run, broken, decision),
    asked_at: run.shared.clock.currentTimeMillisUnsafe(),
    terms: run.shared.decisions.terms,
  });
  const question = Questions.fromRecord(record, incident);
  const isOnRecord = yield* run.writeThrough([{ _tag: "QuestionAsked", question: record }]);
  if (run.question.isOvertaken) return "again";
  if (!isOnRecord && run.stopper === undefined && run.shared.recorder.durable)
    return yield* applyDefault(run, broken, { decision, incident, recorded: false }, record);
  return yield* resolveQuestion(run, broken, { decision, incident, question });
}, withClosing);

/**
 * Applies the default answer to a question that the store did not accept. Without a record, no answer from elsewhere could reach the
 * question (L8).
 */
const applyDefault = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
  record: QuestionRecord,
): Effect.fn.Return<Next<P>, never, R> {
  const choice = Questions.expiryChoice(record);
  run.endAsking();
  run.note(broken.attempt.number, "answer", choice);
  yield* run.write([
    { _tag: "QuestionAnswered", revision: record.revision, answer: choice, by: "expiry" },
    Incident.markEntry(taken.incident, "acted_on", choice),
  ]);
  return yield* carryOut(run, broken, taken, choice);
});

/** Waits for the answer to a question of an earlier process, which is already on record. */
export const askAgain = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  record: QuestionRecord,
): Effect.fn.Return<Next<P>, never, R> {
  run.question.open();
  const question = Questions.fromRecord(record, incident);
  return yield* resolveQuestion(run, broken, { decision: incident.decision, incident, question });
}, withClosing);

/** Returns true if the question should be asked: with `if_it_matters`, only if an answer would change anything. */
export const isWorthAsking = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, decision: Decision): boolean =>
  run.options.asks !== "if_it_matters" || Choices.canChangeResponse(choicesOf(run, broken, decision));

/** Omits `it_ran` and `it_did_not_run` if any open call has a handler running here, because that handler reports the outcome itself. */
const choicesOf = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { choices = ["stop"] }: Decision,
): ReadonlyArray<Choice> => {
  if (openCalls(run, broken).every((call) => !run.ledger.isRunning(call))) return choices;
  const others = choices.filter((choice) => choice !== "it_ran" && choice !== "it_did_not_run");
  return others.length < 2 ? choices : others;
};

/** Returns the calls of the broken response with unknown outcome. */
const openCalls = <P, E, R>(run: Run<P, E, R>, { attempt }: BrokenAttempt<P>): ReadonlyArray<OpenCall> =>
  run.ledger.unsettledCalls(run.chain?.links ?? [attempt]);

/** An open question with its decision and incident. */
interface StandingQuestion extends Pick<RecordedDecision, "decision" | "incident"> {
  readonly question: Questions.Question;
}

const resolveQuestion = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident, question }: StandingQuestion,
): Effect.fn.Return<Next<P>, never, R> {
  run.handoff.push({ _tag: "QuestionAsked", question });
  run.telemetry.reportQuestion(incident);
  const chosen = yield* answerOf(run, question);
  // No process can take up this run, so there is no reason to keep it for a later answer.
  const answer = chosen === "parked" && !run.canBeTakenUp ? "stop" : chosen;
  // An answer is refused if the facts have grown since the question, even in the same step.
  if (run.question.close()) return "again";
  if (answer === undefined && !isLeftToOthers(run)) return "again";
  // While the store is unavailable, the question is queued together with the entry that parks the run, and both are recorded in one write.
  if (answer === undefined || answer === "parked") return yield* Ending.park(run, broken, incident, "question");
  const given = question.choices.includes(answer) ? answer : "stop";
  run.note(broken.attempt.number, "answer", given);
  const known = (yield* onRecord(run, question, given)) ?? (yield* onRecordLater(run, question, given));
  const choice = known ?? given;
  const entries: ReadonlyArray<Entry> = [
    { _tag: "QuestionAnswered", revision: question.revision, answer: choice, by: authorOf(run) },
    Incident.markEntry(incident, "acted_on", choice),
  ];
  // An answer that only ends the run does not wait for the store.
  const noted = yield* isEnd(choice) ? run.write(entries) : run.writeFirst(entries);
  run.handoff.push({ _tag: "QuestionAnswered", revision: question.revision, choice });
  const recorded = noted && known !== undefined;
  return yield* carryOut(run, broken, { decision, incident, recorded }, choice);
});

/**
 * Returns true if the question stays on record for another process. A process that ends leaves its questions open; a user's
 * cancel ends them.
 */
const isLeftToOthers = <P, E, R>(run: Run<P, E, R>): boolean =>
  run.shared.recorder.durable &&
  run.canBeTakenUp &&
  (run.stopper === "lifecycle" || run.stopper === "caller") &&
  !run.isUserCancelled;

/** Returns true if the answer only ends the run and starts nothing. */
const isEnd = (choice: Choice): boolean => choice === "stop" || choice === "accept";

/**
 * Records an answer once the store is back. An answer that only ends the run counts immediately: the store may hold another answer that
 * takes precedence, but it cannot be read now.
 */
const onRecordLater = <P, E, R>(
  run: Run<P, E, R>,
  question: Questions.Question,
  choice: Choice,
): Effect.Effect<Choice | undefined> =>
  isEnd(choice)
    ? Effect.succeed(choice)
    : Effect.flatMap(run.writeFirst([]), (isBack) => (isBack ? onRecord(run, question, choice) : Effect.undefined));

/** Returns the author of this program's answers on record. */
const authorOf = <P, E, R>(run: Run<P, E, R>): "person" | "program" => run.shared.decisions.by ?? "program";

/**
 * Records the answer. The first recorded answer to a question counts, whichever process gave it.
 *
 * @returns the answer that counts; undefined if the store neither accepts this answer nor returns another
 */
const onRecord = <P, E, R>(
  run: Run<P, E, R>,
  { revision }: Questions.Question,
  choice: Choice,
): Effect.Effect<Choice | undefined> => {
  const { recorder } = run.shared;
  if (!recorder.durable) return Effect.succeed(choice);
  return recorder.answer({ run_id: run.runId, revision, choice, by: authorOf(run) }).pipe(
    Effect.as(choice),
    Effect.catch(() =>
      Effect.map(recorder.run(run.runId), (record) => {
        const question = record?.questions.find((it) => it.revision === revision);
        return question?.answer ?? choice;
      }),
    ),
    Effect.orElseSucceed(() => undefined),
  );
};

/** Waits for the answer; undefined if the run is stopped or the facts grow first. */
const answerOf = <P, E, R>(
  run: Run<P, E, R>,
  question: Questions.Question,
): Effect.Effect<Choice | "parked" | undefined> => {
  const outrun = Effect.raceFirst(Deferred.await(run.stopped), run.question.awaitOvertaken);
  const asked = runAbandonable("UserDecisions.ask", () => run.shared.decisions.ask(question));
  return Effect.raceFirst(asked, Effect.as(outrun, undefined));
};

/** Carries out an answer. */
export const carryOut = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
  choice: Choice,
): Effect.fn.Return<Next<P>, never, R> {
  if (choice === "stop") return yield* Ending.stop(run, broken, taken, "stopped");
  if (choice === "accept") return yield* Ending.acceptPartial(run, broken, taken);
  // The following steps act on the answer, so the answer and its question must be on record (L8).
  if (!taken.recorded) return yield* Ending.stop(run, broken, taken, "record_failed");
  switch (choice) {
    case "it_ran":
    case "it_did_not_run": {
      const open = openCalls(run, broken);
      const known = open.filter((call) => !run.ledger.isRunning(call));
      const settled = yield* recordVerdict(run, known, choice, "person");
      // A person's verdict must not settle a call whose handler is running here.
      if (known.length < open.length) return yield* awaitHandlers(run);
      // A verdict settles nothing if a full ledger has folded the calls into one shared row. The same question would then be asked forever.
      if (settled === 0) {
        return yield* Ending.stop(run, broken, taken, "stopped");
      }
      // Without `canContinue`, the answer only settles the call and the decision is taken again.
      if (run.options.canContinue === undefined) return "again";
      break;
    }
    case "retry":
      if (openCalls(run, broken).some((call) => call.effect !== "read_only" && run.ledger.isRunning(call))) {
        return yield* awaitHandlers(run);
      }
      run.spending.renewBudget();
      run.response.forgetPartials();
      run.routes?.resetFailures();
      yield* sleepUnlessStopped(run, honouredWaitMs(broken.failure.retry_after_ms));
      break;
    case "continue":
      break;
  }
  yield* run.response.awaitClose;
  run.spending.resetWaited();
  run.departure.allowWaits();
  const found = yield* awaitDeparture(run);
  if (found._tag === "stays") {
    if (run.spent.waited_ms > 0) return "again";
    // The policy allows no further wait and would ask the same question forever. So the person's answer takes precedence.
    yield* sleepUnlessStopped(run, honouredWaitMs(found.waitMs));
    run.departure.forceRelease();
  }
  if (run.stopper !== undefined) return "again";
  return yield* launch(run, broken, choice === "retry" ? restart(run) : "continue", taken.incident);
});

/**
 * Waits until the running handlers have ended, because the answer could start something while they run. The end of a handler adds facts, so
 * the run is decided again.
 */
const awaitHandlers = <P, E, R>(run: Run<P, E, R>): Effect.Effect<"again"> =>
  Effect.suspend(() => {
    run.question.open();
    const ended = run.chain?.awaitDrain ?? Effect.void;
    return Effect.as(Effect.raceFirst(ended, Deferred.await(run.stopped)), "again");
  });

/** Maximum Retry-After that a person's retry honours, in milliseconds; a longer one is ignored (L11). */
export const announcedMsMax = 86_400_000;

/** Returns the announced wait, or 0 if it exceeds the maximum. */
const honouredWaitMs = (ms = 0): number => (ms > announcedMsMax ? 0 : ms);

/**
 * Returns the mode of a retry that a person chose. `restart` requests the whole response again. `replay` repeats the broken attempt's
 * request, because the caller has parts of the response that it cannot discard.
 */
const restart = <P, E, R>(run: Run<P, E, R>): "restart" | "replay" =>
  run.discardable || run.chain?.links.every((link) => link.flow.ordinal === 0) !== false ? "restart" : "replay";
