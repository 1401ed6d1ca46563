/**
 * Holds what a decision takes from the run around an attempt: flags and counters, which can only veto, and the budget.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { Label, Milliseconds } from "./Limits.ts";

/** How an attempt came to be: the run's first request, a repeat of the failed attempt's own request, a request built from the settled transcript, or a cursor into the very same response. */
export const AttemptMode = Schema.Literals(["first", "replay", "continue", "resume"]);
export type AttemptMode = typeof AttemptMode.Type;

/** The provider and model that a run talks to. `reasoning` left out means not known, which clocks treat as true. */
export const Provider = Schema.Struct({
  id: Label,
  model: Schema.optionalKey(Label),
  reasoning: Schema.optionalKey(Schema.Boolean),
});
export type Provider = typeof Provider.Type;

const flag = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)));
const count = Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)));
const milliseconds = Milliseconds.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)));

/** The run's facts at the moment of a decision. */
export const RunFacts = Schema.Struct({
  /** The mode of the failed attempt. */
  mode: AttemptMode.pipe(Schema.withDecodingDefaultKey(Effect.succeed("first" as const))),
  user_cancelled: flag,
  lifecycle_closed: flag,
  /** The runtime can build a request from its settled transcript. */
  can_continue: flag,
  /** Whether a continuation after shown text needs a question first. */
  continue_text: Schema.Literals(["ask", "auto"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("ask" as const))),
  /** A cursor of the very same response is held. */
  resumable: flag,
  /** The caller can throw away what it was shown. */
  discardable: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  can_refresh_credentials: flag,
  credential_refreshes: count,
  /** Until the provider's throttle has a token, in milliseconds. */
  throttle_wait_ms: milliseconds,
  auto_retries: count,
  not_processed_retries: count,
  retries_after_shown: count,
  retries_after_stall: count,
  /** Since the first failure, progressing time and open questions not counted. */
  elapsed_ms: milliseconds,
});
export type RunFacts = typeof RunFacts.Type;

/** The facts of a run at its first attempt. */
export const fresh: RunFacts = Schema.decodeSync(RunFacts)({});

const limit = (value: number) => Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)));
const limitMs = (value: number) => Milliseconds.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)));

/** What one run may spend on automatic retries. The defaults are small: a retry of a request that was processed pays the prompt again. */
export const Budget = Schema.Struct({
  /** Automatic retries over all modes. */
  max_auto_retries: limit(3),
  /** Retries of failures that the provider did not process, or that were not sent: they cost nothing. */
  max_not_processed: limit(5),
  /** Replays after something was shown. */
  max_after_shown: limit(1),
  /** Replays after a stall. */
  max_after_stall: limit(1),
  /** Time since the first failure, without progressing time and open questions. */
  max_elapsed_ms: limitMs(300_000),
  /** Longest Retry-After that is waited for without a question. */
  max_retry_after_ms: limitMs(60_000),
});
export type Budget = typeof Budget.Type;

/** The budget of a run that names none. */
export const defaultBudget: Budget = Schema.decodeSync(Budget)({});
