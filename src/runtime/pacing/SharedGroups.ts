/**
 * Counts in the store what the runs of a group spend, so that all processes of the store share the group's budget (G5 of `Groups`).
 *
 * Only a run whose budget limits its group asks, once for each response that breaks. It waits for the store as long as its record would:
 * a retry needs both. Where the store does not come back, the run decides by what its own process knows, and its retry does not go
 * for want of a record.
 */
import * as Effect from "effect/Effect";
import type { Budget } from "../../domain/RunFacts.ts";
import { type RunRecorder, recorderWaitMs } from "../../recorder/RunRecorder.ts";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import { type GroupMember, type Groups, idleMs } from "./Groups.ts";

/** A run that may share the budget of its group. */
export interface SharingRun {
  readonly member: GroupMember;
  readonly budget: Budget;
  readonly now: () => number;
}

/** The groups of one processor, as the processes of its store share them. */
export class SharedGroups {
  readonly #groups: Groups;
  readonly #pacing: SharedPacing | undefined;
  /** Longest that a decision waits for the store, in milliseconds. */
  readonly #waitMs: number;
  /** Runs that have counted a retry in the store, until it has gone or was given back: at most those that go on here. */
  readonly #counted = new Set<string>();

  constructor(groups: Groups, { pacing, waitMs = recorderWaitMs }: Pick<RunRecorder["Service"], "pacing" | "waitMs">) {
    this.#groups = groups;
    this.#pacing = pacing;
    this.#waitMs = waitMs;
  }

  /**
   * A response of a run has broken, and is about to be decided.
   *
   * @param tokens what it has cost so far
   */
  breaks({ budget, member, now }: SharingRun, tokens: number): Effect.Effect<void> {
    const pacing = this.#pacing;
    const { group, runId } = member;
    const isLimited = budget.max_group_retries !== undefined || budget.max_group_wasted_tokens !== undefined;
    if (pacing === undefined || group === undefined || !isLimited) return Effect.void;
    return Effect.suspend(() => {
      const added = this.#groups.adds(member, tokens, now());
      const spent = Effect.timeoutOrElse(pacing.spend(group, added, idleMs), {
        duration: this.#waitMs,
        orElse: () => Effect.fail({ message: "it does not answer" }),
      });
      return Effect.match(spent, {
        onFailure: () => this.#groups.learned(member, undefined, now()),
        onSuccess: (all) => {
          if (added.retries > 0) this.#counted.add(runId);
          this.#groups.learned(member, { group_retries: all.retries - 1, group_wasted_tokens: all.tokens }, now());
        },
      });
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
    const back = Effect.ignore(this.#pacing.spend(group, { retries: -1, tokens: 0 }, idleMs));
    // Nothing of this run waits for it.
    return Effect.asVoid(Effect.forkDetach(Effect.timeoutOption(back, this.#waitMs)));
  }
}
