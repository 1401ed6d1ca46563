/** Holds the budget of a run, and learns what an earlier run with the same request has spent of it. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { label } from "../../domain/Limits.ts";
import { type Budget, defaultBudget, subtractRetries } from "../../domain/RunFacts.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { RunOptions, SpentBefore } from "../contract/RunOptions.ts";

/** Maximum time that a decision waits to learn what was spent before the run began, in milliseconds. */
const spentBeforeMs = 1_000;

/** Shared by all runs that repeat no other run. */
const noEntries: ReadonlyArray<Entry> = [];

/** The budget of one run, reduced by the retries that were spent before it began. */
export class EarlierSpending {
  #budget: Budget;
  #spentBefore: Effect.Effect<SpentBefore> | undefined;
  /** Completes when the earlier spending is known; undefined until it is requested. */
  #learning: Deferred.Deferred<void> | undefined;
  /** The failed run whose request this one repeats; undefined until it is known and after it was recorded. */
  #repeats: string | undefined;

  constructor({ budget, spentBefore }: Pick<RunOptions<never, never, never>, "budget" | "spentBefore">) {
    this.#budget = budget === undefined ? defaultBudget : { ...defaultBudget, ...budget };
    this.#spentBefore = spentBefore?.asked;
  }

  /** The budget, without the retries that were spent before the run began, once they are known. */
  get budget(): Budget {
    return this.#budget;
  }

  /**
   * Learns once, before the first decision, what was spent elsewhere before the run began. If the answer is late, fails or is not a number,
   * it counts as zero.
   */
  get learn(): Effect.Effect<void> {
    const asked = this.#spentBefore;
    if (asked === undefined) return this.#learning === undefined ? Effect.void : Deferred.await(this.#learning);
    this.#spentBefore = undefined;
    const known = Deferred.makeUnsafe<void>();
    this.#learning = known;
    const nothing = Effect.succeed<SpentBefore>({ retries: 0 });
    const spent = Effect.timeoutOrElse(asked, { duration: spentBeforeMs, orElse: () => nothing });
    return Effect.ensuring(
      Effect.map(
        Effect.catchCause(spent, () => nothing),
        ({ retries, retryOf }) => {
          if (retries > 0) this.#budget = subtractRetries(this.#budget, retries);
          this.#repeats = retryOf;
        },
      ),
      Effect.sync(() => Deferred.doneUnsafe(known, Effect.void)),
    );
  }

  /** Returns the entry that names the run whose request this one repeats. Returns it only once. */
  takeRepeatEntries(): ReadonlyArray<Entry> {
    const repeats = this.#repeats;
    this.#repeats = undefined;
    return repeats === undefined ? noEntries : [{ _tag: "RunRepeats", retry_of: label(repeats) }];
  }
}
