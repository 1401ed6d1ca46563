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
  /** Replays after a response with nothing in it. */
  retries_after_empty: count,
  /** Since the first failure, progressing time, open questions and waits for a path or a cooldown not counted. */
  elapsed_ms: milliseconds,
  /** The way to the provider. It is down where a connection could not be made, and a probe could make none either. */
  path: Schema.Literals(["up", "down"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("up" as const))),
  /** The request waited for its path and was let go. It may go once, however much of the budget is spent. */
  waited_for_path: flag,
  /** What the run has waited for paths and cooldowns so far, in milliseconds. It only grows. */
  waited_ms: milliseconds,
  /** Until the provider takes requests of this credential and model again, by its own word, in milliseconds. */
  cooldown_ms: milliseconds,
  /** Whether there is another route, not tried by this run, that would take the request now. */
  next_route: Schema.Literals(["none", "up"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("none" as const))),
  /** Failures of this run's attempts on this route in a row before the failed one. */
  route_failures: count,
  /** The route has a credential and a model of its operator's: what it refuses for them is no fault of the request. */
  own_route: flag,
  /** Times that the run has moved to another route. */
  moves: count,
  /** Tokens that broken attempts of the run have cost, as told or as estimated. */
  wasted_tokens: count,
  /** Tokens that the next attempt would repeat, as told or as estimated. */
  next_tokens: count,
  /** Some of the numbers of tokens are estimates: the provider did not tell them. */
  tokens_estimated: flag,
  /** The failed attempt broke behind exactly the words behind which an attempt of the run had broken before: the failure is deterministic. */
  same_partial: flag,
  /** Automatic retries of all runs of the group. */
  group_retries: count,
  /** Tokens that broken attempts of all runs of the group have cost. */
  group_wasted_tokens: count,
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
  /** Retries of failures that the provider did not process, or that were not sent. They have a budget of their own. */
  max_not_processed: limit(3),
  /** Replays after something was shown. */
  max_after_shown: limit(1),
  /** Replays after a stall. */
  max_after_stall: limit(1),
  /** Time since the first failure, without progressing time and open questions. */
  max_elapsed_ms: limitMs(300_000),
  /** Longest Retry-After that is waited for without a question. */
  max_retry_after_ms: limitMs(60_000),
  /** Longest that a run waits for paths and cooldowns, all its waits together; `forever` has no limit. */
  max_outage_ms: Schema.Union([Milliseconds, Schema.Literal("forever")]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(120_000)),
  ),
  /** Times that a run moves to another route; it tries none twice. */
  max_moves: limit(15),
  /** Tokens that broken attempts of a run may cost, those included that the next would repeat. Left out: no limit. */
  max_wasted_tokens: Schema.optionalKey(Schema.Natural),
  /** Automatic retries that the runs of a group share. Left out: no limit. */
  max_group_retries: Schema.optionalKey(Schema.Natural),
  /** Tokens that broken attempts of the runs of a group may cost together. Left out: no limit. */
  max_group_wasted_tokens: Schema.optionalKey(Schema.Natural),
});
export type Budget = typeof Budget.Type;

/** The budget of a run that names none. */
export const defaultBudget: Budget = Schema.decodeSync(Budget)({});

/** What is left of a budget of which automatic retries were spent before. */
export const lessRetries = <Given extends Partial<Budget>>(budget: Given, spent: number): Given & Partial<Budget> => {
  const { max_auto_retries, max_not_processed } = { ...defaultBudget, ...budget };
  return {
    ...budget,
    max_auto_retries: Math.max(0, max_auto_retries - spent),
    max_not_processed: Math.max(0, max_not_processed - spent),
  };
};
