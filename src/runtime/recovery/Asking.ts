/**
 * Asks a person what the policy does not decide, and carries the answer out.
 *
 * A question is on record before it is asked, and its answer before the run acts on it (L8). An answer counts only while the
 * facts are those that the question was asked on.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Choice, Decision } from "../../domain/Decision.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { atMost } from "../../facts/Growth.ts";
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
import { judged } from "./Verify.ts";
import { abandonable, departed, waited } from "./Waits.ts";

/** However the asking ends, its question is open no more. */
const closing = <A, E, R>(asking: Effect.Effect<A, E, R>, { question }: { readonly question: OpenQuestion }) =>
  Effect.ensuring(
    asking,
    Effect.sync(() => question.close()),
  );

/** Asks a new question; where the facts have grown meanwhile the decision is taken again. */
export const ask = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident }: RecordedDecision,
): Effect.fn.Return<Next<P>, never, R> {
  run.question.open();
  if (!atMost(broken.facts(), incident.facts)) return "again";
  const record = Questions.put(incident, {
    revision: run.question.next(),
    attempt: run.attempts,
    choices: choicesOf(run, broken, decision),
    asked_at: run.shared.clock.currentTimeMillisUnsafe(),
    terms: run.shared.decisions.terms,
  });
  const question = Questions.fromRecord(record, incident);
  yield* run.write([{ _tag: "QuestionAsked", question: record }]);
  if (run.question.isOvertaken) return "again";
  return yield* answered(run, broken, { decision, incident, question });
}, closing);

/** Waits for the answer to a question of an earlier process, which is on record already. */
export const askAgain = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  incident: RunIncident,
  record: QuestionRecord,
): Effect.fn.Return<Next<P>, never, R> {
  run.question.open();
  const question = Questions.fromRecord(record, incident);
  return yield* answered(run, broken, { decision: incident.decision, incident, question });
}, closing);

/** Whether an answer would change anything for a caller that asked to be asked only then. */
export const matters = <P, E, R>(run: Run<P, E, R>, broken: BrokenAttempt<P>, decision: Decision): boolean =>
  run.options.asks !== "if_it_matters" || Choices.matter(choicesOf(run, broken, decision));

/** A person is asked about a call only while no handler of the open calls runs here: a handler says itself what it has done. */
const choicesOf = <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { choices = ["stop"] }: Decision,
): ReadonlyArray<Choice> => {
  if (openCalls(run, broken).every((call) => !run.ledger.isRunning(call))) return choices;
  const others = choices.filter((choice) => choice !== "it_ran" && choice !== "it_did_not_run");
  return others.length < 2 ? choices : others;
};

/** The calls of the broken response whose outcome is not known. */
const openCalls = <P, E, R>(run: Run<P, E, R>, { attempt }: BrokenAttempt<P>): ReadonlyArray<OpenCall> =>
  run.ledger.unsettled(run.chain?.links ?? [attempt]);

/** A question that stands, and what is known about it. */
interface StandingQuestion extends Pick<RecordedDecision, "decision" | "incident"> {
  readonly question: Questions.Question;
}

const answered = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  { decision, incident, question }: StandingQuestion,
): Effect.fn.Return<Next<P>, never, R> {
  run.handoff.push({ _tag: "QuestionAsked", question });
  run.telemetry.asking(incident);
  const told = yield* answerOf(run, question);
  // A run that no process can take up is not kept for a later answer.
  const answer = told === "parked" && !run.canBeTakenUp ? "stop" : told;
  // An answer is refused when the facts have grown since it was asked for, also in the same step (Q2).
  if (run.question.close()) return "again";
  if (answer === undefined && !leftToOthers(run)) return "again";
  // While the store is away the question waits with the entry that parks the run, and both come on record together.
  if (answer === undefined || answer === "parked") return yield* Ending.park(run, broken, incident, "question");
  const given = question.choices.includes(answer) ? answer : "stop";
  run.note(broken.attempt.number, "answer", given);
  const known = (yield* onRecord(run, question, given)) ?? (yield* onRecordLater(run, question, given));
  const choice = known ?? given;
  const entries: ReadonlyArray<Entry> = [
    { _tag: "QuestionAnswered", revision: question.revision, answer: choice, by: "program" },
    Incident.marked(incident, "acted_on", choice),
  ];
  // An answer that only ends the run waits for no store.
  const noted = yield* isEnd(choice) ? run.write(entries) : run.writeFirst(entries);
  run.handoff.push({ _tag: "QuestionAnswered", revision: question.revision, choice });
  const recorded = noted && known !== undefined;
  return yield* carryOut(run, broken, { decision, incident, recorded }, choice);
});

/** Whether the question stays on record for another process: a process that ends takes none with it, and a user's cancel ends it. */
const leftToOthers = <P, E, R>(run: Run<P, E, R>): boolean =>
  run.shared.recorder.durable &&
  run.canBeTakenUp &&
  (run.stopper === "lifecycle" || run.stopper === "caller") &&
  !run.userCancelled;

/** An answer that only ends the run starts nothing. */
const isEnd = (choice: Choice): boolean => choice === "stop" || choice === "accept";

/** An answer that starts something waits for the store: another answer that the store holds would count, and cannot be read now. */
const onRecordLater = <P, E, R>(
  run: Run<P, E, R>,
  question: Questions.Question,
  choice: Choice,
): Effect.Effect<Choice | undefined> =>
  isEnd(choice)
    ? Effect.succeed(choice)
    : Effect.flatMap(run.writeFirst([]), (isBack) => (isBack ? onRecord(run, question, choice) : Effect.undefined));

/**
 * Of two answers to one question the one that was recorded first counts, whichever process gave it.
 *
 * @returns undefined where the store neither takes this answer nor tells of another
 */
const onRecord = <P, E, R>(
  run: Run<P, E, R>,
  { revision }: Questions.Question,
  choice: Choice,
): Effect.Effect<Choice | undefined> => {
  const { recorder } = run.shared;
  if (!recorder.durable) return Effect.succeed(choice);
  return recorder.answer({ run_id: run.runId, revision, choice, by: "program" }).pipe(
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

/** The answer, or undefined when the run is stopped or the facts have grown meanwhile. */
const answerOf = <P, E, R>(
  run: Run<P, E, R>,
  question: Questions.Question,
): Effect.Effect<Choice | "parked" | undefined> => {
  const outrun = Effect.raceFirst(Deferred.await(run.stopped), run.question.overtaken);
  const asked = abandonable("UserDecisions.ask", () => run.shared.decisions.ask(question));
  return Effect.raceFirst(asked, Effect.as(outrun, undefined));
};

/** Does what a person chose. */
export const carryOut = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
  taken: RecordedDecision,
  choice: Choice,
): Effect.fn.Return<Next<P>, never, R> {
  if (choice === "stop") return yield* Ending.stop(run, broken, taken, "stopped");
  if (choice === "accept") return yield* Ending.acceptPartial(run, broken, taken);
  // What follows acts on the answer, so the answer and what it answers have to be on record (L8).
  if (!taken.recorded) return yield* Ending.stop(run, broken, taken, "record_failed");
  switch (choice) {
    case "it_ran":
    case "it_did_not_run": {
      const open = openCalls(run, broken);
      const known = open.filter((call) => !run.ledger.isRunning(call));
      const settled = yield* judged(run, known, choice, "person");
      // A person's word ends no call whose handler runs here.
      if (known.length < open.length) return yield* overtaken(run);
      // An answer that settles nothing (rows that were folded) would be asked for again without end.
      if (settled === 0) {
        return yield* Ending.stop(run, broken, taken, "stopped");
      }
      // Without a continuation the answer only settles the call, and the decision is taken anew.
      if (run.options.canContinue === undefined) return "again";
      break;
    }
    case "retry":
      if (openCalls(run, broken).some((call) => call.effect !== "read_only" && run.ledger.isRunning(call))) {
        return yield* overtaken(run);
      }
      run.spending.renewed();
      run.response.forgetPartials();
      run.routes?.renewed();
      yield* waited(run, announced(broken.failure.retry_after_ms));
      break;
    case "continue":
      break;
  }
  yield* run.response.closed;
  run.spending.mayWaitAnew();
  run.departure.mayWaitAnew();
  const found = yield* departed(run);
  if (found._tag === "stays") {
    if (run.spent.waited_ms > 0) return "again";
    // Nothing may be waited: the same question would be asked again at once, without end. So the person's word stands.
    yield* waited(run, announced(found.waitMs));
    run.departure.goesAnyway();
  }
  if (run.stopper !== undefined) return "again";
  return yield* launch(run, broken, choice === "retry" ? restart(run) : "continue", taken.incident);
});

/**
 * The answer met a handler which still runs here: what the answer starts could run beside it. As soon as the handler has ended
 * the facts have grown, and everything is decided anew.
 */
const overtaken = <P, E, R>(run: Run<P, E, R>): Effect.Effect<"again"> =>
  Effect.suspend(() => {
    run.question.open();
    const ended = run.chain?.drained ?? Effect.void;
    return Effect.as(Effect.raceFirst(ended, Deferred.await(run.stopped)), "again");
  });

/** Longest Retry-After that a person's retry waits for, in milliseconds; a longer one is not believed (L11). */
export const announcedMsMax = 86_400_000;

/** The wait that a provider announced. */
const announced = (ms = 0): number => (ms > announcedMsMax ? 0 : ms);

/** A person's retry asks for the response from its start. Where a caller that cannot discard has parts of it, the broken attempt's own request is repeated. */
const restart = <P, E, R>(run: Run<P, E, R>): "restart" | "replay" =>
  run.discardable || run.chain?.links.every((link) => link.flow.ordinal === 0) !== false ? "restart" : "replay";
