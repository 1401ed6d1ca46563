/**
 * Counts what a run has spent of its budget.
 *
 * S1 Numbers only grow. Only a person's retry resets all of them; any answer that continues the run resets the waited time. A prefill that
 * the provider refuses is not a retry.
 * S2 Time counts from the first failure, because before it there is no recovery. The wait of a retry always counts, even if the response
 * ended without an error, before its marker. A connect that failed because its path was down does not start the time, because the request
 * after the wait counts as the first one.
 * S3 A retry counts once: as free if the provider did not process the request, else against the budget.
 * S4 Waits for paths and cooldowns are counted separately and do not count as elapsed time.
 * S5 The cost of a broken response counts when the run abandons it. A response that is resumed continues.
 */
import { fresh, type RunFacts } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";

/** The facts that the budget contributes to a decision. */
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

/** Properties of a retry that decide which budget it uses. */
interface Retry {
  /** True if the provider says that it did not process the request, so that the retry is free. */
  readonly isFree: boolean;
  /** True if the whole response is requested again after parts of it were shown. */
  readonly isAfterShown: boolean;
  /** True if the whole response is requested again because it stalled. */
  readonly isAfterStall: boolean;
  /** True if the whole response is requested again because it was empty. */
  readonly isAfterEmpty: boolean;
}

/** The spending of one run. */
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
  /** Tokens of the run's request, as a provider reported them; 0 if none did. */
  #inputTokens = 0;
  #hasFailed = false;
  /** True if the run had failed before its last failure. */
  #hadFailed = false;

  /**
   * Called when an attempt has failed. Elapsed time counts from the first failure on (S2).
   *
   * @param inputTokens tokens of its request, as its provider reported them
   */
  recordFailure(inputTokens = 0): void {
    this.#hadFailed = this.#hasFailed;
    this.#hasFailed = true;
    this.#inputTokens = Math.max(inputTokens, this.#inputTokens);
  }

  /**
   * Called when a request that was not sent because its path was down is sent after all. The failed connect does not count (S2).
   */
  forgiveFailure(): void {
    this.#hasFailed = this.#hadFailed;
  }

  /**
   * Books the cost of an abandoned response (S5). A retry that a person asks for starts a fresh budget, and that budget bears this cost
   * (S1).
   */
  addAbandonedCost(cost: Tokens.TokenCost): void {
    if (!this.#hasFailed) return;
    this.#wastedTokens = Tokens.sum(this.#wastedTokens, Tokens.total(cost));
    this.#tokensEstimated ||= cost.estimated;
  }

  /** Counts elapsed time, in milliseconds. Time before the first failure does not count (S2). */
  addElapsed(ms: number): void {
    if (this.#hasFailed) this.#elapsedMs += ms;
  }

  /** Counts the wait of a retry, in milliseconds (S2). */
  addRetryWait(ms: number): void {
    this.#elapsedMs += ms;
  }

  /** Counts a request's wait for its path or for the end of a cooldown, in milliseconds (S4). */
  addDepartureWait(ms: number): void {
    this.#waitedMs += ms;
  }

  /** Called when a person lets the run continue. Resets the waited time but not the rest of the budget. */
  resetWaited(): void {
    this.#waitedMs = 0;
  }

  /** Counts a retry that starts (S3). */
  countRetry({ isAfterEmpty, isAfterShown, isAfterStall, isFree }: Retry): void {
    if (isFree) {
      this.#notProcessedRetries += 1;
      return;
    }
    this.#autoRetries += 1;
    if (isAfterShown) this.#retriesAfterShown += 1;
    if (isAfterStall) this.#retriesAfterStall += 1;
    if (isAfterEmpty) this.#retriesAfterEmpty += 1;
  }

  /** Takes back the newest retry, because the provider rejected the form of its request without processing it. */
  uncountRetry(): void {
    this.#autoRetries = Math.max(0, this.#autoRetries - 1);
  }

  /** Counts an attempt to renew the credentials, successful or not. */
  countRefresh(): void {
    this.#credentialRefreshes += 1;
  }

  /** Called when a person asks for a retry, which comes with a fresh budget (S1). */
  renewBudget(): void {
    this.#set(fresh);
    this.#hasFailed = false;
    this.#hadFailed = false;
  }

  /**
   * Restores the spending of a recorded run, one of whose attempts has failed.
   *
   * @param inputTokens tokens of its request, as its providers reported them
   */
  restore(spent: SpentBudget, inputTokens?: number): void {
    this.#set(spent);
    this.recordFailure(inputTokens);
  }

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

/** The spending of a run that has not failed yet. */
export const nothingSpent: SpentBudget = new Spending().facts();
