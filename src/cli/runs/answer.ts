/**
 * `stream-recovery runs answer ID CHOICE`: answers a question once.
 */
import { Console, Effect, Option } from "effect";
import { Argument, Command, Flag, Prompt } from "effect/cli";
import { Choice } from "../../domain/Decision.ts";
import * as Choices from "../../policy/Choices.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import * as CrashRecovery from "../../runtime/crash/CrashRecovery.ts";
import { describeRepeats, openQuestionOf } from "../../story/Question.ts";
import { takeUpHint } from "../../story/Words.ts";
import { exitCodesHelp, failing } from "../command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore, withWaitNotice } from "../command/Store.ts";
import { wrap } from "../terminal/Prose.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";
import { questionText } from "./QuestionText.ts";
import { findRun } from "./RunLookup.ts";
import { runArgument } from "./show.ts";

const fail = failing("runs answer");

/** Answers a run's open question, or prints the question if no choice is given. */
export const answerCommand = Command.make(
  "answer",
  {
    id: runArgument,
    choice: Argument.String("choice").pipe(
      Argument.withDescription(`The answer: ${Choice.literals.join(", ")}; if omitted, the question is printed`),
      Argument.optional,
    ),
    db: dbFlag,
    revision: Flag.Int("revision").pipe(
      Flag.withDescription("Answer only this revision of the question; the answer is refused if a newer one exists"),
      Flag.optional,
    ),
    yes: Flag.Boolean("yes").pipe(
      Flag.withDescription("Skip the confirmation if `retry` may run a tool again"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, id, ...options }) => withStore("runs answer", db, (screen) => answer(id, options, screen)),
).pipe(
  Command.withDescription(
    `Answer a run's open question, or print it. An answer counts once, and only if nothing has happened since the question was asked. The answer "stop" also ends a run that has no open question and waits for its program to resume it.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Print a run's question, or answer it"),
  Command.withExamples([
    { command: "stream-recovery runs answer 4f1c", description: "Print the question and the effect of each answer" },
    {
      command: "stream-recovery runs answer 4f1c it_ran",
      description: "Answer that the tool did its work: continue from there",
    },
  ]),
);

interface AnswerOptions {
  readonly choice: Option.Option<string>;
  readonly revision: Option.Option<number>;
  readonly yes: boolean;
  readonly json: boolean;
}

/**
 * Answers a question. If no choice is given, prints the question.
 *
 * @param id a run's id or a prefix of it
 */
export const answer = Effect.fn("cli.runs.answer")(function* (id: string, options: AnswerOptions, screen: Screen) {
  const record = yield* findRun("runs answer", id);
  if (Option.isNone(options.choice)) return yield* print(record, options.json, screen);
  const named = options.choice.value;
  const choice = Choice.literals.find((literal) => literal === named);
  if (choice === undefined) {
    const offered = openQuestion(record)?.choices ?? Choice.literals;
    return yield* fail("refused", `${JSON.stringify(named)} is not an answer: expected one of ${offered.join(", ")}`);
  }
  if (choice === "stop" && record.end === undefined && openQuestion(record) === undefined)
    return yield* giveUp(record, options, screen);
  if (choice === "retry") yield* confirmRepeats(record, options.yes);
  const revision = Option.getOrElse(options.revision, () => record.questions.at(-1)?.revision ?? 0);
  const answered = CrashRecovery.answer({ run_id: record.run_id, revision, choice, by: "person" });
  const taken = yield* Effect.catchTag(withWaitNotice("runs answer", answered), "AnswerRefused", ({ message }) =>
    fail("refused", message),
  );
  if (options.json) {
    return yield* Console.log(JSON.stringify({ run_id: taken.run_id, revision, answer: choice, state: taken.state }));
  }
  yield* Console.log(`${screen.ink("good", "✓")} ${taken.run_id}: ${choice}. ${describeNextStep(taken, screen)}`);
});

/** Ends a run that has no open question and no program to resume it. Only `stop` does this. */
const giveUp = Effect.fnUntraced(function* ({ run_id }: RunRecord, { json }: AnswerOptions, screen: Screen) {
  const ended = yield* CrashRecovery.giveUp(run_id).pipe(
    Effect.catchTag("AnswerRefused", ({ message }) => fail("refused", message)),
    Effect.catchIf(isDriven, () => fail("refused", `${run_id}: a live process owns the run; stop it in that process`)),
  );
  if (json) return yield* Console.log(JSON.stringify({ run_id, answer: "stop", state: ended.state }));
  yield* Console.log(`${screen.ink("good", "✓")} ${run_id}: stop. ${describeNextStep(ended, screen)}`);
});

const isDriven = (error: { readonly reason: string }): error is RecorderError & { readonly reason: "owned" } =>
  error instanceof RecorderError && error.reason === "owned";

/** Returns the next step, which depends on the run's state: ended, owned by a process, or parked. */
const describeNextStep = (record: RunRecord, { type }: Screen): string => {
  if (record.end !== undefined) return `The run has ended: ${record.end.state} (${record.end.reason}).`;
  return record.parked === undefined
    ? `Its process carries it out: ${type(`runs watch ${quoteForShell(record.run_id)}`)}`
    : takeUpHint(record.run_id);
};

const print = Effect.fnUntraced(function* (record: RunRecord, json: boolean, screen: Screen) {
  const open = openQuestionOf(record);
  if (open === undefined) return yield* fail("negative", `${record.run_id} has no open question`);
  if (json) {
    const { incident, question } = open;
    const may_repeat = incident === undefined ? [] : Choices.mayRepeat(incident);
    return yield* Console.log(
      JSON.stringify(
        {
          run_id: record.run_id,
          ...question,
          message: incident?.message,
          ...(may_repeat.length === 0 ? {} : { may_repeat }),
        },
        null,
        2,
      ),
    );
  }
  yield* Console.log(`${screen.ink("strong", record.run_id)}\n${questionText(record.run_id, open, screen)}`);
});

/** Asks for confirmation before a retry that may run a tool a second time. */
const confirmRepeats = Effect.fnUntraced(function* (record: RunRecord, yes: boolean) {
  const open = openQuestionOf(record);
  if (open?.repeats === undefined || yes) return;
  const repeats = describeRepeats(open.repeats);
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
    return yield* fail("refused", `retry may run again: ${repeats}. Add --yes to confirm`);
  }
  for (const line of wrap(`These calls ran or may have run, and may run again: ${repeats}`, 78))
    yield* Console.log(line);
  const sure = yield* Effect.orElseSucceed(
    Prompt.run(Prompt.Confirm({ message: "Ask again from the start?" })),
    () => false,
  );
  if (!sure) return yield* fail("refused", "no answer was given");
});
