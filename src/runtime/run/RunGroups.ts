/**
 * Holds the groups of one run's state that are made with their first use: many runs wait at once, and each holds what it has.
 *
 * `Run` is made on it. Each group has its invariants in its own header.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { label } from "../../domain/Limits.ts";
import { type Budget, defaultBudget, lessRetries } from "../../domain/RunFacts.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Stopper } from "../contract/InterruptSignature.ts";
import type { RunOptions, SpentBefore } from "../contract/RunOptions.ts";
import type { Taps } from "../contract/Taps.ts";
import type { Loss } from "./Loss.ts";
import { OpenQuestion } from "./OpenQuestion.ts";
import { RunStop } from "./RunStop.ts";
import { nothingSpent, Spending, type SpentBudget } from "./Spending.ts";

/** Longest that a decision waits to learn what was spent before its run, in milliseconds. */
const spentBeforeMs = 1_000;

/** Shared by all runs that repeat none. */
const noEntries: ReadonlyArray<Entry> = [];

/** What a run has spent, why it stops, its question, its numbers, and whether it is done; and the taps of its output. */
export class RunGroups<P> {
  /** They stay when the run has ended: its last events are taken later. */
  readonly taps: Taps<P> | undefined;
  #spending: Spending | undefined;
  #stopping: RunStop | undefined;
  #question: OpenQuestion | undefined;
  #done: Deferred.Deferred<void> | undefined;
  #budget: Budget;
  #spentBefore: Effect.Effect<SpentBefore> | undefined;
  /** Done once what was spent before is known; undefined until it is asked. */
  #learning: Deferred.Deferred<void> | undefined;
  /** The failed run whose request this one repeats, from when it is known until it is put on record. */
  #repeats: string | undefined;
  #attempts = 0;
  #incidents = 0;
  #canBeTakenUp = false;
  /** The attempt of a whole response whose end is told, and not on record: where the run is lost by then, it has flown on. */
  protected wholeBy: number | undefined;

  constructor({ budget, spentBefore, taps }: Pick<RunOptions<P, never, never>, "budget" | "spentBefore" | "taps">) {
    this.taps = taps;
    this.#budget = budget === undefined ? defaultBudget : { ...defaultBudget, ...budget };
    this.#spentBefore = spentBefore?.asked;
  }

  /** What the run may spend. */
  get budget(): Budget {
    return this.#budget;
  }

  /**
   * Learns what was spent before the run began, where that is asked elsewhere: before its first decision, and once. What does not
   * come in time, or is no number, is as if nothing had been.
   */
  get learned(): Effect.Effect<void> {
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
          if (retries > 0) this.#budget = lessRetries(this.#budget, retries);
          this.#repeats = retryOf;
        },
      ),
      Effect.sync(() => Deferred.doneUnsafe(known, Effect.void)),
    );
  }

  /** What says which run this one repeats, for the record; given once. */
  takesRepeats(): ReadonlyArray<Entry> {
    const repeats = this.#repeats;
    this.#repeats = undefined;
    return repeats === undefined ? noEntries : [{ _tag: "RunRepeats", retry_of: label(repeats) }];
  }

  /** Attempts that were prepared so far (U1 of `Run`). */
  get attempts(): number {
    return this.#attempts;
  }

  /** The number of the attempt that is prepared (U1). */
  protected nextAttempt(): number {
    this.#attempts += 1;
    return this.#attempts;
  }

  /** The attempt that was prepared last never came on record, and gives its number back (U1). */
  dropPrepared(): void {
    this.#attempts -= 1;
  }

  /** The number of the next incident (U1). */
  nextIncident(): number {
    this.#incidents += 1;
    return this.#incidents;
  }

  /** The run goes on behind so many. */
  protected numbered(attempts: number, incidents: number): void {
    this.#attempts = attempts;
    this.#incidents = incidents;
  }

  /** `StreamProcessor.takeUp` can take the run: the digest of what it was started from is on record. */
  get canBeTakenUp(): boolean {
    return this.#canBeTakenUp;
  }

  /** The digest of what the run was started from is on record. */
  keepsTranscript(): void {
    this.#canBeTakenUp = true;
  }

  /** Nobody reads the run now. */
  get isAway(): boolean {
    return this.taps?.presence?.isAway === true;
  }

  /** What was spent of the budget. */
  get spending(): Spending {
    this.#spending ??= new Spending();
    return this.#spending;
  }

  /** What was spent of the budget, as a decision takes it. */
  get spent(): SpentBudget {
    return this.#spending?.facts() ?? nothingSpent;
  }

  /** Time has passed, in milliseconds; it counts where the run has failed before. */
  protected passed(ms: number): void {
    this.#spending?.passed(ms);
  }

  /** Why the run stops; only `Run` changes it. */
  protected get stopping(): RunStop {
    this.#stopping ??= new RunStop();
    return this.#stopping;
  }

  /** Hears the caller's signal no more. */
  unheed(): void {
    this.#stopping?.unheed();
  }

  get stopper(): Stopper | undefined {
    return this.#stopping?.by;
  }

  get userCancelled(): boolean {
    return this.#stopping?.userCancelled === true;
  }

  get lifecycleClosed(): boolean {
    return this.#stopping?.lifecycleClosed === true;
  }

  /** Why the run is not this process's any more. */
  get loss(): Loss | undefined {
    return this.#stopping?.loss;
  }

  /** The run is another process's, and its response goes on here to its end, or has come to it. See Loss. */
  get flows(): boolean {
    return this.#stopping?.flows === true;
  }

  /** What flowed on comes to something that may not: nothing more of it is handed over, and the run has to be stopped behind it. */
  flowsNoMore(): void {
    this.stopping.flowsNoMore();
  }

  /** Done as soon as the run is stopped. */
  get stopped(): Deferred.Deferred<void> {
    return this.stopping.stopped;
  }

  /** Waits until the processor closes, also where the run was stopped before. */
  get closing(): Effect.Effect<void> {
    return this.stopping.closing;
  }

  /** The question that is open. */
  get question(): OpenQuestion {
    this.#question ??= new OpenQuestion();
    return this.#question;
  }

  /** The facts have grown under the question. Returns whether one was open, which is overtaken now. */
  protected grew(): boolean {
    return this.#question?.grew() === true;
  }

  /** Done when the end is on record and the last attempt has closed or was abandoned. */
  get done(): Deferred.Deferred<void> {
    this.#done ??= Deferred.makeUnsafe<void>();
    return this.#done;
  }
}
