/**
 * Answers the questions that the policy leaves to a person: at once, by a function, or through the record.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { Choice, Rule } from "../../domain/Decision.ts";
import * as Choices from "../../policy/Choices.ts";
import type { Question, QuestionTerms } from "../../recorder/Question.ts";
import type { DurableOptions } from "./DurableQuestions.ts";
import * as DurableQuestions from "./DurableQuestions.ts";

/** Answers the questions that the policy leaves to a person. */
export class UserDecisions extends Context.Service<
  UserDecisions,
  {
    /**
     * Asks. It may wait for as long as a person takes; it is interrupted when the run is cancelled or closed.
     *
     * @returns one of `question.choices`; any other answer is taken as `stop`. Or `parked`: no answer comes for now, so the
     *   stream ends with `RunInterrupted { parked }` while the question stays open
     */
    ask(question: UserDecisions.Question): Effect.Effect<Choice | "parked">;
    readonly terms?: UserDecisions.QuestionTerms;
  }
>()("effect-stream-recovery/UserDecisions") {
  /**
   * Answers at once, by configuration. The default: without a person nothing uncertain is repeated.
   *
   * It answers five questions of a run and stops it at the next, so that a failure that stays is not paid for without an end.
   */
  static readonly layerHeadless = (options?: UserDecisions.HeadlessOptions) =>
    Layer.succeed(UserDecisions, {
      ask: (question) =>
        Effect.succeed(
          question.revision > headlessAnswersMax
            ? "stop"
            : (options?.rules?.[question.rule] ?? blanket(question, options?.otherwise)),
        ),
    });

  /**
   * Asks by a function of yours: a prompt in a terminal, a dialog.
   *
   * @param ask its requirements are taken where the layer is built
   */
  static readonly layerAsk = <R>(
    ask: (question: UserDecisions.Question) => Effect.Effect<Choice | "parked", never, R>,
  ) =>
    Layer.effect(
      UserDecisions,
      Effect.map(Effect.context<R>(), (services) => ({
        ask: (question: UserDecisions.Question) => Effect.provideContext(ask(question), services),
      })),
    );

  /**
   * Asks through the record: a program, a command line or a page answers, in this process or another one. Needs a recorder.
   *
   * @param options.parkAfterMs how long a stream waits before it is parked (default 10 minutes); its question stays open
   */
  static readonly layerDurable = (options?: UserDecisions.DurableOptions) =>
    Layer.effect(UserDecisions, DurableQuestions.make(options));
}

/** Its types stand in the namespace of the same name. */
export declare namespace UserDecisions {
  export type { DurableOptions, Question, QuestionTerms };

  /** What `layerHeadless` answers. */
  export interface HeadlessOptions {
    /**
     * The answer where no rule names another one; default `stop`. It never repeats a side effect: a `retry` that may repeat
     * something, and `it_did_not_run`, which lets a call run again, are answered `stop` here. Name the rule for them.
     */
    readonly otherwise?: Choice;
    /**
     * Answers by rule, a `retry` that may repeat something among them: a program that names the rule has said so. A choice that a
     * question does not offer is never taken: `stop` is.
     */
    readonly rules?: Partial<Record<Rule, Choice>>;
  }
}

/** Maximum questions of a run that `layerHeadless` answers. A response that breaks this often will break again. */
const headlessAnswersMax = 5;

/** A blanket answer is no second word on what this question may repeat. */
const blanket = ({ choices, may_repeat }: Question, otherwise: Choice | undefined): Choice =>
  otherwise === "it_did_not_run" ? "stop" : Choices.defaultOf(choices, may_repeat, otherwise);
