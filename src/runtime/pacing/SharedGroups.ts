/**
 * Counts in the store what the runs of a group spend, so that all processes of the store share the group's budget (G5 of `Groups`).
 *
 * Only a run whose budget limits its group asks, once for each response that breaks. It waits for the store as long as its record would:
 * a retry needs both. Where the store does not come back, the run decides by what its own process knows, and its retry does not go
 * for want of a record.
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
  /** Done when the run is stopped: it waits for nothing then. */
  readonly stopped: Effect.Effect<void>;
}

/** The groups of one processor, as the processes of its store share them. */
export class SharedGroups {
  readonly #groups: Groups;
  readonly #pacing: SharedPacing | undefined;
  /** Runs that have counted a retry in the store, until it has gone or was given back: at most those that go on here. */
  readonly #counted = new Set<string>();

  /** @param pacing of a bounded recorder: its calls come back */
  constructor(groups: Groups, pacing: SharedPacing | undefined) {
    this.#groups = groups;
    this.#pacing = pacing;
  }

  /**
   * A response of a run has broken, and is about to be decided.
   *
   * @param tokens what it has cost so far
   */
  breaks({ budget, member, now, stopped }: SharingRun, tokens: number): Effect.Effect<void> {
    const pacing = this.#pacing;
    const { group, runId } = member;
    const isLimited = budget.max_group_retries !== undefined || budget.max_group_wasted_tokens !== undefined;
    if (pacing === undefined || group === undefined || !isLimited) return Effect.void;
    return Effect.suspend(() => {
      const added = this.#groups.adds(member, tokens, now());
      let isLeft = false;
      const learned = (everywhere: GroupFacts | undefined) => {
        if (!isLeft) this.#groups.learned(member, everywhere, now());
      };
      const counted = Effect.match(pacing.spend(group, added, idleMs), {
        onFailure: () => learned(undefined),
        onSuccess: (all) => {
          if (added.retries > 0) this.#counted.add(runId);
          learned({ group_retries: all.retries - 1, group_wasted_tokens: all.tokens });
        },
      });
      // A run that was stopped takes no retry: what is counted for it behind that goes back.
      const late = Effect.suspend(() => (isLeft && added.retries > 0 ? this.#givesBack(member) : Effect.void));
      const leaves = Effect.sync(() => {
        isLeft = true;
      });
      return Effect.flatMap(Effect.forkDetach(Effect.andThen(counted, late), { startImmediately: true }), (fiber) =>
        Effect.onInterrupt(Effect.raceFirst(Fiber.join(fiber), Effect.andThen(stopped, leaves)), () => leaves),
      );
    });
  }

  /** The run has decided: a retry that it does not take is the group's again. */
  decided(member: GroupMember): Effect.Effect<void> {
    return Effect.suspend(() => (this.#groups.holds(member) ? Effect.void : this.#givesBack(member)));
  }

  /** The retry goes, and stays counted. */
  went({ runId }: GroupMember): void {
    this.#counted.delete(runId);
  }

  /** The run has ended. */
  left(member: GroupMember): Effect.Effect<void> {
    return Effect.suspend(() => this.#givesBack(member));
  }

  #givesBack({ group, runId }: GroupMember): Effect.Effect<void> {
    if (!this.#counted.delete(runId) || group === undefined || this.#pacing === undefined) return Effect.void;
    // Nothing of this run waits for it.
    return Effect.asVoid(
      Effect.forkDetach(Effect.ignore(this.#pacing.spend(group, { retries: -1, tokens: 0 }, idleMs))),
    );
  }
}
