/**
 * Counts a group's spending in the store, so that all processes of the store share the group's budget (G5 of `Groups`).
 *
 * Only a run whose budget limits its group asks the store, once per broken response. The run waits for the store's count as long as for its
 * record, because a retry needs both. If the store stays unavailable, the run decides from what its own process knows. Its retry cannot
 * start anyway, because the start must be recorded.
 */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type { Budget } from "../../domain/RunFacts.ts";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import { type GroupFacts, type GroupMember, type Groups, idleMs } from "./Groups.ts";

/** A run that may share the budget of its group. */
export interface SharingRun {
  readonly member: GroupMember;
  readonly budget: Budget;
  readonly now: () => number;
  /** Completes when the run is stopped, which ends every wait. */
  readonly stopped: Effect.Effect<void>;
}

/** The groups of one processor, shared by the processes of its store. */
export class SharedGroups {
  readonly #groups: Groups;
  readonly #pacing: SharedPacing | undefined;
  /** Runs whose retry is counted in the store and has neither started nor been given back. Bounded by the runs in progress here. */
  readonly #counted = new Set<string>();

  /** @param pacing shared pacing of a bounded recorder, whose calls are limited in time */
  constructor(groups: Groups, pacing: SharedPacing | undefined) {
    this.#groups = groups;
    this.#pacing = pacing;
  }

  /**
   * Counts a broken response before it is decided.
   *
   * @param tokens cost of the response so far
   */
  countBreak({ budget, member, now, stopped }: SharingRun, tokens: number): Effect.Effect<void> {
    const pacing = this.#pacing;
    const { group, runId } = member;
    const isLimited = budget.max_group_retries !== undefined || budget.max_group_wasted_tokens !== undefined;
    if (pacing === undefined || group === undefined || !isLimited) return Effect.void;
    return Effect.suspend(() => {
      const added = this.#groups.additionOf(member, tokens, now());
      let isLeft = false;
      const setEverywhere = (everywhere: GroupFacts | undefined) => {
        if (!isLeft) this.#groups.setSpendingEverywhere(member, everywhere, now());
      };
      const counted = Effect.match(pacing.spend(group, added, idleMs), {
        onFailure: () => setEverywhere(undefined),
        onSuccess: (all) => {
          if (added.retries > 0) this.#counted.add(runId);
          setEverywhere({ group_retries: all.retries - 1, group_wasted_tokens: all.tokens });
        },
      });
      // A stopped run takes no retry. If the store counts the retry only after the stop, the retry is given back.
      const late = Effect.suspend(() => (isLeft && added.retries > 0 ? this.#returnRetry(member) : Effect.void));
      const markLeft = Effect.sync(() => {
        isLeft = true;
      });
      return Effect.flatMap(Effect.forkDetach(Effect.andThen(counted, late), { startImmediately: true }), (fiber) =>
        Effect.onInterrupt(Effect.raceFirst(Fiber.join(fiber), Effect.andThen(stopped, markLeft)), () => markLeft),
      );
    });
  }

  /** Gives the counted retry back to the group if the run has decided not to take it. */
  returnUnusedRetry(member: GroupMember): Effect.Effect<void> {
    return Effect.suspend(() => (this.#groups.hasPendingRetry(member) ? Effect.void : this.#returnRetry(member)));
  }

  /** Marks the retry as started; it stays counted. */
  markStarted({ runId }: GroupMember): void {
    this.#counted.delete(runId);
  }

  /** Gives the counted retry of an ended run back to its group, if that retry has not started. */
  leave(member: GroupMember): Effect.Effect<void> {
    return Effect.suspend(() => this.#returnRetry(member));
  }

  #returnRetry({ group, runId }: GroupMember): Effect.Effect<void> {
    if (!this.#counted.delete(runId) || group === undefined || this.#pacing === undefined) return Effect.void;
    // The run does not wait for this write.
    return Effect.asVoid(
      Effect.forkDetach(Effect.ignore(this.#pacing.spend(group, { retries: -1, tokens: 0 }, idleMs))),
    );
  }
}
