/**
 * Accounts for the combined spending of a group of runs (an agent and its sub-agents).
 *
 * G1 A run's spending is booked in the step that decides it, so two runs cannot both spend what is left of the budget.
 * G2 A retry that was taken counts once. If its run decides again before the retry starts, retries that other runs took do not count
 * against it. A run that ends first, or decides against the retry, has not taken one.
 * G3 The cost of a response counts once, however often its run decides about it.
 * G5 If processes share a store, a run counts its retry there before it decides, and gives it back if it does not take it. The run
 * decides by its place among all processes, so together they take no more retries than one process would.
 * G4 A group is forgotten after `idleMs` without use; beyond `groupsMax`, the least recently used one is evicted (L11).
 */
import type { RunFacts } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";

/** Time that an unused group is kept: one hour, in milliseconds. */
export const idleMs = 3_600_000;

/** Maximum number of groups kept. */
export const groupsMax = 4_096;

/** The group's spending that a decision takes into account. */
export type GroupFacts = Pick<RunFacts, "group_retries" | "group_wasted_tokens">;

/** Identifies a run and its group. */
export interface GroupMember {
  readonly runId: string;
  /** The group's key: an id in the scope of a credential. Undefined if the run has no group. */
  readonly group: string | undefined;
}

/** Pending spending of one run: a retry that has not started, and the cost of a response that may still continue. */
interface Share {
  /** Number of retries that the group had spent before this retry. */
  place: number | undefined;
  tokens: number;
  /** The group's spending in all processes without this retry, if the processes share it (G5). */
  everywhere?: GroupFacts | undefined;
}

interface Group {
  retries: number;
  wastedTokens: number;
  at: number;
  readonly shares: Map<string, Share>;
}

const alone: GroupFacts = { group_retries: 0, group_wasted_tokens: 0 };

/**
 * Returns the key of a group. The same id under two credentials is two groups.
 *
 * @param credential a digest of the credential, never the credential itself
 */
export const groupKey = (id: string, credential: string | undefined): string => JSON.stringify([credential ?? "", id]);

/** The groups of one processor. Times are monotonic milliseconds. */
export class Groups {
  readonly #groups = new Map<string, Group>();

  /** Returns the group's spending, without the run's own retry that has not started yet (G2). */
  facts({ group, runId }: GroupMember, now: number): GroupFacts {
    const found = group === undefined ? undefined : this.#findFresh(group, now);
    if (found === undefined) return alone;
    const share = found.shares.get(runId);
    if (share?.everywhere !== undefined) return share.everywhere;
    const place = share?.place;
    const retries = place === undefined ? found.retries : Math.min(place, found.retries - 1);
    return { group_retries: retries, group_wasted_tokens: found.wastedTokens };
  }

  /**
   * Books the cost of a broken response (G3).
   *
   * @param tokens cost of the response so far
   */
  countBreak(member: GroupMember, tokens: number, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined) return;
    const { group, share } = joined;
    group.wastedTokens = Tokens.sum(group.wastedTokens, Math.max(0, tokens - share.tokens));
    share.tokens = Math.max(share.tokens, tokens);
  }

  /** Returns what the run may add to its group: the broken response and the retry that it may take (G2, G3, G5). */
  additionOf(
    { group, runId }: GroupMember,
    tokens: number,
    now: number,
  ): { readonly retries: number; readonly tokens: number } {
    const share = group === undefined ? undefined : this.#findFresh(group, now)?.shares.get(runId);
    return { retries: share?.place === undefined ? 1 : 0, tokens: Math.max(0, tokens - (share?.tokens ?? 0)) };
  }

  /** Sets the group's spending in all processes, without the retry that the run may take; undefined if it is unknown (G5). */
  setSpendingEverywhere(member: GroupMember, everywhere: GroupFacts | undefined, now: number): void {
    const joined = this.#join(member, now);
    if (joined !== undefined) joined.share.everywhere = everywhere;
  }

  /** Returns true if the run has taken a retry that has not started yet. */
  hasPendingRetry({ group, runId }: GroupMember): boolean {
    return group !== undefined && this.#groups.get(group)?.shares.get(runId)?.place !== undefined;
  }

  /** Takes a retry from the group (G1, G2). */
  take(member: GroupMember, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined || joined.share.place !== undefined) return;
    joined.share.place = joined.group.retries;
    joined.group.retries += 1;
  }

  /** Gives a retry that the run does not use back to its group. */
  returnRetry({ group, runId }: GroupMember): void {
    const found = group === undefined ? undefined : this.#groups.get(group);
    const share = found?.shares.get(runId);
    if (found === undefined || share?.place === undefined) return;
    found.retries -= 1;
    share.place = undefined;
  }

  /**
   * Marks the run's retry as started.
   *
   * @param goesOn true if the retry continues the same response, whose cost then still grows (G3)
   */
  markStarted(member: GroupMember, goesOn: boolean, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined) return;
    joined.share.place = undefined;
    if (!goesOn) joined.share.tokens = 0;
  }

  /** Removes an ended run. */
  leave(member: GroupMember): void {
    this.returnRetry(member);
    if (member.group !== undefined) this.#groups.get(member.group)?.shares.delete(member.runId);
  }

  get size(): number {
    return this.#groups.size;
  }

  #join({ group, runId }: GroupMember, now: number): { readonly group: Group; readonly share: Share } | undefined {
    if (group === undefined) return undefined;
    const found = this.#findFresh(group, now) ?? { retries: 0, wastedTokens: 0, at: now, shares: new Map() };
    found.at = now;
    this.#groups.delete(group);
    this.#groups.set(group, found);
    this.#forget(now);
    const share = found.shares.get(runId) ?? { place: undefined, tokens: 0 };
    found.shares.set(runId, share);
    return { group: found, share };
  }

  #findFresh(group: string, now: number): Group | undefined {
    const found = this.#groups.get(group);
    return found === undefined || now - found.at > idleMs ? undefined : found;
  }

  /** Evicts the first groups, because groups are in order of last use (G4). */
  #forget(now: number): void {
    for (const [group, { at }] of this.#groups) {
      if (this.#groups.size <= groupsMax && now - at <= idleMs) return;
      this.#groups.delete(group);
    }
  }
}
