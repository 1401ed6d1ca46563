/**
 * Counts what the runs of a group (an agent and its sub-agents) spend together.
 *
 * G1 What a run spends stands in its group in the step that decides it: of runs that decide at once none sees what another has
 *    taken as free.
 * G2 A retry that was taken counts once, and keeps its place if its run decides again before it goes: what others take meanwhile is
 *    not held against it. A run that ends before, or decides against the retry, has taken none.
 * G3 What a response has cost counts once, however often its run decides about it.
 * G5 Where processes share a store, a run counts its retry there before it decides, and gives it back where it takes none: what it
 *    decides by is its place among all, so that they take no more together than one would.
 * G4 A group that is idle for `idleMs` is forgotten, and beyond `groupsMax` the one that is idle longest (L11).
 */
import type { RunFacts } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";

/** How long a group is kept after its last word, in milliseconds: an hour. */
export const idleMs = 3_600_000;

/** Groups that are told apart at a time. */
export const groupsMax = 4_096;

/** What a decision takes of the run's group. */
export type GroupFacts = Pick<RunFacts, "group_retries" | "group_wasted_tokens">;

/** A run, as its group knows it. */
export interface GroupMember {
  readonly runId: string;
  /** Names its group: an id, in the scope of a credential. Undefined where it is in none. */
  readonly group: string | undefined;
}

/** What one run has under way: a retry that has not gone yet, and the cost of a response that may still go on. */
interface Share {
  /** Retries that the group had spent when this one was taken. */
  place: number | undefined;
  tokens: number;
  /** What its group has spent in all processes without this retry, where they share that (G5). */
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
 * Names a group in the scope of a credential: the same id of two credentials names two groups.
 *
 * @param credential a digest of it, never the credential itself
 */
export const groupKey = (id: string, credential: string | undefined): string => JSON.stringify([credential ?? "", id]);

/** The groups of one processor. Times are monotonic milliseconds. */
export class Groups {
  readonly #groups = new Map<string, Group>();

  /** What the group has spent, the run's own retry that has not gone yet left out (G2). */
  facts({ group, runId }: GroupMember, now: number): GroupFacts {
    const found = group === undefined ? undefined : this.#known(group, now);
    if (found === undefined) return alone;
    const share = found.shares.get(runId);
    if (share?.everywhere !== undefined) return share.everywhere;
    const place = share?.place;
    const retries = place === undefined ? found.retries : Math.min(place, found.retries - 1);
    return { group_retries: retries, group_wasted_tokens: found.wastedTokens };
  }

  /**
   * A response of the run has broken (G3).
   *
   * @param tokens what it has cost so far
   */
  broke(member: GroupMember, tokens: number, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined) return;
    const { group, share } = joined;
    group.wastedTokens = Tokens.sum(group.wastedTokens, Math.max(0, tokens - share.tokens));
    share.tokens = Math.max(share.tokens, tokens);
  }

  /** What a run adds to its group by a response that has broken, and by the retry that it may take (G2, G3, G5). */
  adds(
    { group, runId }: GroupMember,
    tokens: number,
    now: number,
  ): { readonly retries: number; readonly tokens: number } {
    const share = group === undefined ? undefined : this.#known(group, now)?.shares.get(runId);
    return { retries: share?.place === undefined ? 1 : 0, tokens: Math.max(0, tokens - (share?.tokens ?? 0)) };
  }

  /** What the group has spent in all processes, without the retry that the run may take; undefined where that is not known (G5). */
  learned(member: GroupMember, everywhere: GroupFacts | undefined, now: number): void {
    const joined = this.#join(member, now);
    if (joined !== undefined) joined.share.everywhere = everywhere;
  }

  /** Whether the run has taken a retry that has not gone yet. */
  holds({ group, runId }: GroupMember): boolean {
    return group !== undefined && this.#groups.get(group)?.shares.get(runId)?.place !== undefined;
  }

  /** The run takes a retry of its group (G1, G2). */
  take(member: GroupMember, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined || joined.share.place !== undefined) return;
    joined.share.place = joined.group.retries;
    joined.group.retries += 1;
  }

  /** The run does not take its retry after all: it is the group's again. */
  giveBack({ group, runId }: GroupMember): void {
    const found = group === undefined ? undefined : this.#groups.get(group);
    const share = found?.shares.get(runId);
    if (found === undefined || share?.place === undefined) return;
    found.retries -= 1;
    share.place = undefined;
  }

  /**
   * The retry goes.
   *
   * @param goesOn in the very same response, whose cost goes on too (G3)
   */
  went(member: GroupMember, goesOn: boolean, now: number): void {
    const joined = this.#join(member, now);
    if (joined === undefined) return;
    joined.share.place = undefined;
    if (!goesOn) joined.share.tokens = 0;
  }

  /** The run has ended. */
  leave(member: GroupMember): void {
    this.giveBack(member);
    if (member.group !== undefined) this.#groups.get(member.group)?.shares.delete(member.runId);
  }

  /** How many groups are kept. */
  get size(): number {
    return this.#groups.size;
  }

  #join({ group, runId }: GroupMember, now: number): { readonly group: Group; readonly share: Share } | undefined {
    if (group === undefined) return undefined;
    const found = this.#known(group, now) ?? { retries: 0, wastedTokens: 0, at: now, shares: new Map() };
    found.at = now;
    this.#groups.delete(group);
    this.#groups.set(group, found);
    this.#forget(now);
    const share = found.shares.get(runId) ?? { place: undefined, tokens: 0 };
    found.shares.set(runId, share);
    return { group: found, share };
  }

  #known(group: string, now: number): Group | undefined {
    const found = this.#groups.get(group);
    return found === undefined || now - found.at > idleMs ? undefined : found;
  }

  /** Groups stand in the order of their last word, so that the first ones are those to forget (G4). */
  #forget(now: number): void {
    for (const [group, { at }] of this.#groups) {
      if (this.#groups.size <= groupsMax && now - at <= idleMs) return;
      this.#groups.delete(group);
    }
  }
}
