/**
 * A question to a person: which run broke how, and what may be answered.
 */
import type { Choice, Decision, Rule } from "../../domain/Decision.ts";

/** A question: which run broke how, in one sentence, and what may be answered. */
export interface Question {
  readonly run_id: string;
  /** Grows with every question of a run; an answer to an older one is refused. */
  readonly revision: number;
  readonly incident: string;
  readonly rule: Rule;
  /** What happened, whether a tool ran, what is safe to do. */
  readonly message: string;
  /**
   * What `retry` may repeat: keys of calls that ran or may have run, and words for what the provider may have run unseen. Ask
   * a person twice before you answer `retry` where it is not empty.
   */
  readonly may_repeat: ReadonlyArray<string>;
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
