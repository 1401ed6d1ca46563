/**
 * Counts what a run has spent of its budget.
 *
 * S1 A number only grows; a person's retry alone begins all of them anew. A prefill that the provider does not take is no retry.
 * S2 Time counts from the first failure on: what a response takes that never broke is no recovery. The wait of a retry always
 *    counts, also where the response had ended without an error, before its marker. A connect that failed because its path was down
 *    starts no time: the request that goes after the wait is a first one.
 * S3 A retry counts once: as one that the provider did not process, or as one of the budget.
 * S4 What the run waits for paths and cooldowns is counted apart from that time, and costs none of it.
 * S5 What a broken response has cost counts when the run gives it up; a response that is resumed goes on.
 */
import { fresh, type RunFacts } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";

/** The budget's side of a run's facts. */
export type SpentBudget = Pick<
  RunFacts,
  | "auto_retries"
  | "not_processed_retries"
  | "retries_after_shown"
  | "retries_after_stall"
  | "retries_after_empty"
  | "credential_refreshes"
  | "elapsed_ms"
  | "waited_ms"
  | "wasted_tokens"
  | "next_tokens"
  | "tokens_estimated"
>;

/** What the budget asks of a retry. */
interface Retry {
  /** The provider says that it did nothing: the retry costs none of the budget. */
  readonly isFree: boolean;
  /** The whole response is asked for again, after parts of it were shown. */
  readonly isAfterShown: boolean;
  /** The whole response is asked for again, because it stalled. */
  readonly isAfterStall: boolean;
  /** The whole response is asked for again, because it had nothing in it. */
  readonly isAfterEmpty: boolean;
}

/** What one run has spent. */
export class Spending {
  #autoRetries = 0;
  #notProcessedRetries = 0;
  #retriesAfterShown = 0;
  #retriesAfterStall = 0;
  #retriesAfterEmpty = 0;
  #credentialRefreshes = 0;
  #elapsedMs = 0;
  #waitedMs = 0;
  #wastedTokens = 0;
  #tokensEstimated = false;
  /** Tokens of the run's request, as an attempt was told them; 0 where none was. */
  #inputTokens = 0;
  #hasFailed = false;
  /** True if the run had failed before its last failure. */
  #hadFailed = false;

  /**
   * An attempt has failed: time counts from here on (S2).
   *
   * @param inputTokens what its provider has told of its request
   */
  failed(inputTokens = 0): void {
    this.#hadFailed = this.#hasFailed;
    this.#hasFailed = true;
    this.#inputTokens = Math.max(inputTokens, this.#inputTokens);
  }

  /** A request that was not sent because its path was down goes now: the failed connect counts for nothing (S2). */
  goesFree(): void {
    this.#hasFailed = this.#hadFailed;
  }

  /** A broken response is given up (S5). What a person asks to repeat is paid for by the budget that the person gives (S1). */
  gaveUp(cost: Tokens.TokenCost): void {
    if (!this.#hasFailed) return;
    this.#wastedTokens = Tokens.sum(this.#wastedTokens, Tokens.total(cost));
    this.#tokensEstimated ||= cost.estimated;
  }

  /** Time has passed, in milliseconds. Before the first failure it costs nothing (S2). */
  passed(ms: number): void {
    if (this.#hasFailed) this.#elapsedMs += ms;
  }

  /** A retry has waited, in milliseconds (S2). */
  waited(ms: number): void {
    this.#elapsedMs += ms;
  }

  /** A request has waited for its path or for the end of a cooldown, in milliseconds (S4). */
  waitedToGo(ms: number): void {
    this.#waitedMs += ms;
  }

  /** A person lets the run go on: what it may wait begins anew, the rest of its budget does not. */
  mayWaitAnew(): void {
    this.#waitedMs = 0;
  }

  /** A retry starts (S3). */
  retried({ isAfterEmpty, isAfterShown, isAfterStall, isFree }: Retry): void {
    if (isFree) {
      this.#notProcessedRetries += 1;
      return;
    }
    this.#autoRetries += 1;
    if (isAfterShown) this.#retriesAfterShown += 1;
    if (isAfterStall) this.#retriesAfterStall += 1;
    if (isAfterEmpty) this.#retriesAfterEmpty += 1;
  }

  /** What the newest retry asked for is not to be had in that form, and the provider has done nothing: it costs none of the budget. */
  gaveBack(): void {
    this.#autoRetries = Math.max(0, this.#autoRetries - 1);
  }

  /** The run tries to renew its credentials: the try counts, whether it works or not. */
  refreshed(): void {
    this.#credentialRefreshes += 1;
  }

  /** A person asks for a retry, and gives a fresh budget with it (S1). */
  renewed(): void {
    this.#set(fresh);
    this.#hasFailed = false;
    this.#hadFailed = false;
  }

  /**
   * The run goes on from its record: an attempt of it has failed.
   *
   * @param inputTokens what its providers have told of its request
   */
  restored(spent: SpentBudget, inputTokens?: number): void {
    this.#set(spent);
    this.failed(inputTokens);
  }

  /** What a decision takes. */
  facts(): SpentBudget {
    return {
      credential_refreshes: this.#credentialRefreshes,
      auto_retries: this.#autoRetries,
      not_processed_retries: this.#notProcessedRetries,
      retries_after_shown: this.#retriesAfterShown,
      retries_after_stall: this.#retriesAfterStall,
      retries_after_empty: this.#retriesAfterEmpty,
      elapsed_ms: Math.round(this.#elapsedMs),
      waited_ms: Math.round(this.#waitedMs),
      wasted_tokens: this.#wastedTokens,
      next_tokens: this.#inputTokens,
      tokens_estimated: this.#tokensEstimated,
    };
  }

  #set(spent: SpentBudget): void {
    this.#autoRetries = spent.auto_retries;
    this.#notProcessedRetries = spent.not_processed_retries;
    this.#retriesAfterShown = spent.retries_after_shown;
    this.#retriesAfterStall = spent.retries_after_stall;
    this.#retriesAfterEmpty = spent.retries_after_empty;
    this.#credentialRefreshes = spent.credential_refreshes;
    this.#elapsedMs = spent.elapsed_ms;
    this.#waitedMs = spent.waited_ms;
    this.#wastedTokens = spent.wasted_tokens;
    this.#tokensEstimated = spent.tokens_estimated;
  }
}

/** What a run has spent that has not failed yet. */
export const nothingSpent: SpentBudget = new Spending().facts();
