/**
 * Holds the groups of one run's state. Nearly all groups are created on first use, to save memory while many runs wait.
 *
 * `Run` extends this class. Each group documents its invariants in its own header.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { label } from "../../domain/Limits.ts";
import { type Budget, defaultBudget, subtractRetries } from "../../domain/RunFacts.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Stopper } from "../contract/InterruptSignature.ts";
import type { RunOptions, SpentBefore } from "../contract/RunOptions.ts";
import type { Taps } from "../contract/Taps.ts";
import type { Loss } from "./Loss.ts";
import { OpenQuestion } from "./OpenQuestion.ts";
import { RunStop } from "./RunStop.ts";
import { nothingSpent, Spending, type SpentBudget } from "./Spending.ts";

/** Maximum time that a decision waits to learn what was spent before the run began, in milliseconds. */
const spentBeforeMs = 1_000;

/** Shared by all runs that repeat no other run. */
const noEntries: ReadonlyArray<Entry> = [];

/** The state groups of one run (spending, stop, question, numbers, completion) and the taps on its output. */
export class RunGroups<P> {
  /** Kept after the run has ended, because the reader may take its last events later. */
  readonly taps: Taps<P> | undefined;
  #spending: Spending | undefined;
  #stopping: RunStop | undefined;
  #question: OpenQuestion | undefined;
  #done: Deferred.Deferred<void> | undefined;
  #budget: Budget;
  #spentBefore: Effect.Effect<SpentBefore> | undefined;
  /** Completes when the earlier spending is known; undefined until it is requested. */
  #learning: Deferred.Deferred<void> | undefined;
  /** The failed run whose request this one repeats. Undefined until it is known, and again once it is recorded. */
  #repeats: string | undefined;
  #attempts = 0;
  #incidents = 0;
  #canBeTakenUp = false;

  constructor({ budget, spentBefore, taps }: Pick<RunOptions<P, never, never>, "budget" | "spentBefore" | "taps">) {
    this.taps = taps;
    this.#budget = budget === undefined ? defaultBudget : { ...defaultBudget, ...budget };
    this.#spentBefore = spentBefore?.asked;
  }

  get budget(): Budget {
    return this.#budget;
  }

  /**
   * Determines once, before the first decision, how much was spent elsewhere before the run began. A result that is late, fails or is not a
   * number counts as zero.
   */
  get learnSpentBefore(): Effect.Effect<void> {
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

  /** Number of attempts prepared so far (U1 of `Run`). */
  get attempts(): number {
    return this.#attempts;
  }

  /** Returns the number for the attempt that is being prepared. */
  protected nextAttempt(): number {
    this.#attempts += 1;
    return this.#attempts;
  }

  /** Releases the number of the last prepared attempt, which was never recorded. */
  dropPrepared(): void {
    this.#attempts -= 1;
  }

  /** Returns the number for the next incident. */
  nextIncident(): number {
    this.#incidents += 1;
    return this.#incidents;
  }

  /** Restores the numbers that a previous process recorded. */
  protected restoreNumbers(attempts: number, incidents: number): void {
    this.#attempts = attempts;
    this.#incidents = incidents;
  }

  /** True if `StreamProcessor.takeUp` can take up the run, because the digest of its transcript is on record. */
  get canBeTakenUp(): boolean {
    return this.#canBeTakenUp;
  }

  /** Called when the digest of the run's transcript is on record. */
  allowTakeUp(): void {
    this.#canBeTakenUp = true;
  }

  /** True if the run has no reader at the moment. */
  get isAway(): boolean {
    return this.taps?.presence?.isAway === true;
  }

  get spending(): Spending {
    this.#spending ??= new Spending();
    return this.#spending;
  }

  /** The spending as a decision reads it. */
  get spent(): SpentBudget {
    return this.#spending?.facts() ?? nothingSpent;
  }

  /** Counts elapsed time, in milliseconds, if the run has failed before. */
  protected addElapsed(ms: number): void {
    this.#spending?.addElapsed(ms);
  }

  /** The reason for the run's stop. Only `Run` changes it. */
  protected get stopping(): RunStop {
    this.#stopping ??= new RunStop();
    return this.#stopping;
  }

  /** Stops listening to the caller's signal. */
  stopListening(): void {
    this.#stopping?.stopListening();
  }

  get stopper(): Stopper | undefined {
    return this.#stopping?.by;
  }

  get isUserCancelled(): boolean {
    return this.#stopping?.isUserCancelled === true;
  }

  get isLifecycleClosed(): boolean {
    return this.#stopping?.isLifecycleClosed === true;
  }

  /** Reason why this process no longer owns the run. */
  get loss(): Loss | undefined {
    return this.#stopping?.loss;
  }

  /** Completes as soon as the run is stopped. */
  get stopped(): Deferred.Deferred<void> {
    return this.stopping.stopped;
  }

  /** Waits until the processor closes, even if the run was stopped before. */
  get closing(): Effect.Effect<void> {
    return this.stopping.closing;
  }

  get question(): OpenQuestion {
    this.#question ??= new OpenQuestion();
    return this.#question;
  }

  /** Called when facts have grown. Returns true if a question was open, which is now overtaken. */
  protected overtakeQuestion(): boolean {
    return this.#question?.overtake() === true;
  }

  /** Completes when the end was written (or is pending) and the last attempt has closed or was abandoned. */
  get done(): Deferred.Deferred<void> {
    this.#done ??= Deferred.makeUnsafe<void>();
    return this.#done;
  }
}
