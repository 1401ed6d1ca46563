/** Holds the facts of a run on which a decision is based, and the budget of the run. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { Label, Milliseconds } from "./Limits.ts";

/**
 * Origin of an attempt: the run's first request, a repeat of the failed attempt's own request, a request built from the settled
 * transcript, or a cursor into the same response.
 */
export const AttemptMode = Schema.Literals(["first", "replay", "continue", "resume"]);
export type AttemptMode = typeof AttemptMode.Type;

/** Provider and model of a run. `reasoning` is omitted if unknown, which clocks treat as true. */
export const Provider = Schema.Struct({
  id: Label,
  model: Schema.optionalKey(Label),
  reasoning: Schema.optionalKey(Schema.Boolean),
});
export type Provider = typeof Provider.Type;

const flag = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)));
const count = Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)));
const milliseconds = Milliseconds.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)));

/** Facts of the run at the moment of a decision. */
export const RunFacts = Schema.Struct({
  mode: AttemptMode.pipe(Schema.withDecodingDefaultKey(Effect.succeed("first" as const))),
  user_cancelled: flag,
  lifecycle_closed: flag,
  /** True if the runtime can build a request from its settled transcript. */
  can_continue: flag,
  /** `auto` if shown text may be continued without a question; `ask` if a continuation needs a question first. */
  continue_text: Schema.Literals(["ask", "auto"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("ask" as const))),
  /** True if the run has a cursor into the same response. */
  resumable: flag,
  /** True if the caller can discard what it was shown. */
  discardable: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  can_refresh_credentials: flag,
  credential_refreshes: count,
  /** Time until the provider's throttle has a token, in milliseconds. */
  throttle_wait_ms: milliseconds,
  auto_retries: count,
  not_processed_retries: count,
  retries_after_shown: count,
  retries_after_stall: count,
  retries_after_empty: count,
  /** Time since the first failure, in milliseconds. Excludes time with progress, open questions, and waits for a path or a cooldown. */
  elapsed_ms: milliseconds,
  /** Path to the provider. It is down if a connection could not be made and a probe could not make one either. */
  path: Schema.Literals(["up", "down"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("up" as const))),
  /** True if the request waited for its path and was released. It may be sent once, even if the budget is exhausted. */
  waited_for_path: flag,
  /** Total time that the run has waited for paths and cooldowns, in milliseconds. It only grows. */
  waited_ms: milliseconds,
  /** Time until the provider accepts requests of this credential and model again, as it announced, in milliseconds. */
  cooldown_ms: milliseconds,
  /** `up` if another route, not tried by this run, would take the request now. */
  next_route: Schema.Literals(["none", "up"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("none" as const))),
  /** Number of consecutive failed attempts of this run on this route before the current failure. */
  route_failures: count,
  /**
   * True if the operator of the route, not the caller, chose its credential and model. A rejection because of them is then not the
   * request's fault.
   */
  own_route: flag,
  moves: count,
  /** Tokens that broken attempts of the run have cost, as reported or estimated. */
  wasted_tokens: count,
  /** Tokens that the next attempt would repeat, as reported or estimated. */
  next_tokens: count,
  /** True if some token counts are estimates, because the provider did not report them. */
  tokens_estimated: flag,
  /**
   * True if the failed attempt broke after exactly the same content as an earlier attempt of the run, so that the failure is deterministic.
   */
  same_partial: flag,
  group_retries: count,
  /** Tokens that broken attempts of all runs of the group have cost. */
  group_wasted_tokens: count,
});
export type RunFacts = typeof RunFacts.Type;

/** Facts of a run at its first attempt. */
export const fresh: RunFacts = Schema.decodeSync(RunFacts)({});

const limit = (value: number) => Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)));
const limitMs = (value: number) => Milliseconds.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)));

/**
 * Limits on the automatic retries of one run. The defaults are small, because a retry of a processed request pays for the prompt
 * again.
 */
export const Budget = Schema.Struct({
  /** Maximum automatic retries, all modes together. */
  max_auto_retries: limit(3),
  /** Maximum retries of failures that the provider did not process and of requests that were not sent. They are counted separately. */
  max_not_processed: limit(3),
  /** Maximum replays after something was shown. */
  max_after_shown: limit(1),
  /** Maximum replays after a stall. */
  max_after_stall: limit(1),
  /**
   * Maximum time since the first failure, in milliseconds. Excludes time with progress, open questions, and waits for a path or a cooldown.
   */
  max_elapsed_ms: limitMs(300_000),
  /** Maximum Retry-After that is waited for without a question, in milliseconds. */
  max_retry_after_ms: limitMs(60_000),
  /** Maximum total wait of a run for paths and cooldowns, in milliseconds; `forever` removes the limit. */
  max_outage_ms: Schema.Union([Milliseconds, Schema.Literal("forever")]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(120_000)),
  ),
  /** Maximum moves of a run to another route. No route is tried twice. */
  max_moves: limit(15),
  /**
   * Maximum tokens that broken attempts of a run may cost, including those that the next attempt would repeat. Omitted: no limit.
   */
  max_wasted_tokens: Schema.optionalKey(Schema.Natural),
  /** Maximum automatic retries that the runs of a group share. Omitted: no limit. */
  max_group_retries: Schema.optionalKey(Schema.Natural),
  /** Maximum tokens that broken attempts of the runs of a group may cost together. Omitted: no limit. */
  max_group_wasted_tokens: Schema.optionalKey(Schema.Natural),
});
export type Budget = typeof Budget.Type;

/** Budget of a run that sets none. */
export const defaultBudget: Budget = Schema.decodeSync(Budget)({});

/** Returns a budget reduced by automatic retries that were already spent. */
export const subtractRetries = <Given extends Partial<Budget>>(
  budget: Given,
  spent: number,
): Given & Partial<Budget> => {
  const { max_auto_retries, max_not_processed } = { ...defaultBudget, ...budget };
  return {
    ...budget,
    max_auto_retries: Math.max(0, max_auto_retries - spent),
    max_not_processed: Math.max(0, max_not_processed - spent),
  };
};
