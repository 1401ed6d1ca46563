/**
 * Answers the questions that the policy leaves to a person: immediately by configuration, by a function, or through the record.
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
     * Asks a question. It may take as long as a person needs, and is interrupted when the run is cancelled or closed.
     *
     * @returns one of `question.choices`; any other answer counts as `stop`. `parked` means that no answer will come for now. The stream
     *   then ends with `RunInterrupted { parked }` while the question stays open
     */
    ask(question: UserDecisions.Question): Effect.Effect<Choice | "parked">;
    /** The author of the answers on record; default `program`. Each answer of a person allows further takeovers of its run. */
    readonly by?: "person" | "program";
    readonly terms?: UserDecisions.QuestionTerms;
  }
>()("effect-stream-recovery/UserDecisions") {
  /**
   * Answers immediately by configuration. This is the default, so nothing uncertain is repeated without a person.
   *
   * It answers five questions of a run and stops the run at the sixth, so that a persistent failure does not cause unlimited cost.
   */
  static readonly layerHeadless = (options?: UserDecisions.HeadlessOptions) =>
    Layer.succeed(UserDecisions, {
      ask: (question) =>
        Effect.succeed(
          question.revision > headlessAnswersMax
            ? "stop"
            : (options?.rules?.[question.rule] ?? safeDefault(question, options?.otherwise)),
        ),
    });

  /**
   * Asks through a function of the caller, for example a terminal prompt or a dialog.
   *
   * @param ask the function; the layer's requirements include those of its effect
   * @param options.by `person` if the function passes the question to a person; default `program`
   */
  static readonly layerAsk = <R>(
    ask: (question: UserDecisions.Question) => Effect.Effect<Choice | "parked", never, R>,
    { by = "program" }: { readonly by?: "person" | "program" } = {},
  ) =>
    Layer.effect(
      UserDecisions,
      Effect.map(Effect.context<R>(), (services) => ({
        ask: (question: UserDecisions.Question) => Effect.provideContext(ask(question), services),
        by,
      })),
    );

  /**
   * Asks through the record. A program, the command line or a page can answer, in this process or another. Requires a recorder.
   *
   * @param options.parkAfterMs maximum wait of a stream before it is parked, in milliseconds (default 10 minutes); its question stays open
   */
  static readonly layerDurable = (options?: UserDecisions.DurableOptions) =>
    Layer.effect(UserDecisions, DurableQuestions.make(options));
}

/** Types of the service. */
export declare namespace UserDecisions {
  export type { DurableOptions, Question, QuestionTerms };

  /** Options of `layerHeadless`. Without any, every question is answered with `stop`. */
  export interface HeadlessOptions {
    /**
     * The answer for questions whose rule is not in `rules`; default `stop`. It never repeats a side effect. So `it_did_not_run`, which
     * lets a call run again, and a `retry` that may repeat something become `stop`. Name the rule in `rules` to allow them.
     */
    readonly otherwise?: Choice;
    /**
     * Answers by rule. The answers may include a `retry` that may repeat something, because naming the rule is consent. A choice that the
     * question does not offer becomes `stop`.
     */
    readonly rules?: Partial<Record<Rule, Choice>>;
  }
}

/** Maximum questions of a run that `layerHeadless` answers. A response that has broken this often is likely to break again. */
const headlessAnswersMax = 5;

/** Returns the default answer, or `stop` if that answer may repeat something, because a default does not consent to that. */
const safeDefault = ({ choices, may_repeat }: Question, otherwise: Choice | undefined): Choice =>
  otherwise === "it_did_not_run" ? "stop" : Choices.defaultOf(choices, may_repeat, otherwise);
