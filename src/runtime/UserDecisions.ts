/**
 * Answers the questions that the policy leaves to a person.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { Choice, Decision, Rule } from "../domain/Decision.ts";

/** A question: which run broke how, in one sentence, and what may be answered. */
export interface Question {
  readonly run_id: string;
  /** Grows with every question of a run; an answer to an older one is refused. */
  readonly revision: number;
  readonly incident: string;
  readonly rule: Rule;
  /** What happened, whether a tool ran, what is safe to do. */
  readonly message: string;
  /** At least two. */
  readonly choices: ReadonlyArray<Choice>;
  /** What an unattended question takes. */
  readonly default_choice: Choice;
  /** Wall clock, milliseconds since the epoch. */
  readonly asked_at: number;
  /** From then on only the default is taken; never when left out. */
  readonly expires_at?: number;
  readonly decision: Decision;
}

/** What is true of every question that a layer of UserDecisions is asked. */
export interface QuestionTerms {
  /** A question expires after so many milliseconds and takes its default; it never does when left out. */
  readonly expiryMs?: number;
  /** Defaults by rule, instead of `stop`. A default that a question does not offer is never taken: `stop` is. */
  readonly defaults?: Partial<Record<Rule, Choice>>;
}

/** What `layerHeadless` answers. */
export interface HeadlessOptions {
  /** The answer where no rule names another one; default `stop`. */
  readonly otherwise?: Choice;
  /** Answers by rule. A choice that a question does not offer is never taken: `stop` is. */
  readonly rules?: Partial<Record<Rule, Choice>>;
}

/** Who answers questions. */
export class UserDecisions extends Context.Service<
  UserDecisions,
  {
    /**
     * Asks. It may wait for as long as a person takes; it is interrupted when the run is cancelled or closed.
     *
     * @returns one of `question.choices`, any other answer is taken as `stop`; or `parked`: nobody answers for now, so the
     *   stream ends with `RunInterrupted { parked }` while the question stays open
     */
    ask(question: Question): Effect.Effect<Choice | "parked">;
    readonly terms?: QuestionTerms;
  }
>()("effect-stream-recovery/UserDecisions") {
  /** Answers at once, by configuration. The default: nobody is there, so nothing uncertain is repeated. */
  static readonly layerHeadless = (options?: HeadlessOptions) =>
    Layer.succeed(UserDecisions, {
      ask: (question) => Effect.succeed(options?.rules?.[question.rule] ?? options?.otherwise ?? "stop"),
    });

  /**
   * Asks by a function of yours: a prompt in a terminal, a dialog.
   *
   * @param ask its requirements are taken where the layer is built
   */
  static readonly layerAsk = <R>(ask: (question: Question) => Effect.Effect<Choice | "parked", never, R>) =>
    Layer.effect(
      UserDecisions,
      Effect.map(Effect.context<R>(), (services) => ({
        ask: (question: Question) => Effect.provideContext(ask(question), services),
      })),
    );
}
