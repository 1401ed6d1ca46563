/**
 * Describes what equal processes over one store know together, beside its runs: there is no membership, and what must hold
 * across them is a row.
 *
 * A fact is a row of a kind and a key, and is over by itself. What is told is a bell and no more: who hears it reads the rows,
 * and whoever has missed it finds them with the next look. So nothing rests on a message, only how soon it is known. No value
 * holds a prompt or a credential: keys are digests under a secret that only the processes of the store know.
 */
import type * as Effect from "effect/Effect";
import type * as Redacted from "effect/Redacted";

/** The kinds of facts. Those of `toldKinds` are told of as they are put; `owner` says which token made a stored response, the others what became of a failed request. */
export type FactKind = "failed" | "told" | "owner" | ToldKind;

/** What every process has to know soon: a wait that a provider announced, and a run that somebody cancels. */
export const toldKinds = ["cooldown", "cancel"] as const;

/** One of them. */
export type ToldKind = (typeof toldKinds)[number];

/** Why a fact cannot be put or read now: the store is away. */
export interface FactsFault {
  readonly message: string;
}

/** A fact as it stands. Ages are by the clock of the store. */
export interface Fact {
  readonly key: string;
  /** JSON of who has put it. */
  readonly value: string;
  /** The process that has put it. */
  readonly node: string;
  /** Another one for each put, also of the same key. */
  readonly stamp: string;
  /** Milliseconds since it was put. */
  readonly ageMs: number;
  /** Milliseconds until it is over. */
  readonly leftMs: number;
}

/** What a group of runs has spent. */
export interface GroupSpent {
  readonly retries: number;
  readonly tokens: number;
}

/** How much a bucket holds, and how fast it fills up. */
export interface BucketSize {
  readonly max: number;
  readonly perSecond: number;
}

/** What a process hears. */
export type Word =
  /** A fact of a kind was put. */
  | { readonly _tag: "Put"; readonly kind: ToldKind }
  /** A question of a run was answered. */
  | { readonly _tag: "Answered"; readonly run_id: string }
  /** Something may have been missed: everything is to be looked at. It comes from time to time, and when a lost connection is back. */
  | { readonly _tag: "Look" };

/** What processes over one store know together. */
export interface SharedFacts {
  /** This process, by a name that no other one ever has. */
  readonly node: string;
  /** A secret of all processes of the store, and of no other process: drawn once, with its tables. */
  readonly secret: Redacted.Redacted<string>;
  /** Puts a fact in the place of the one of its key. One of `toldKinds` is told to every process. */
  readonly put: (kind: FactKind, key: string, value: string, keepMs: number) => Effect.Effect<void, FactsFault>;
  /** A fact that is not over. */
  readonly find: (kind: FactKind, key: string) => Effect.Effect<Fact | undefined, FactsFault>;
  /** Takes a fact away: of several that take at the same moment one gets it. */
  readonly take: (kind: FactKind, key: string) => Effect.Effect<Fact | undefined, FactsFault>;
  /** All facts of a kind that are not over, at most `factsMax`, the newest. */
  readonly all: (kind: ToldKind) => Effect.Effect<ReadonlyArray<Fact>, FactsFault>;
  /**
   * Adds to what a group of runs has spent, in one step for all processes.
   *
   * @returns what it has spent with that
   */
  readonly spend: (group: string, spent: GroupSpent, keepMs: number) => Effect.Effect<GroupSpent, FactsFault>;
  /**
   * Takes out of a bucket of tokens that fills up by itself, in one step for all processes. It is full when it is first named.
   *
   * @param count how many; below 0 they are put back
   * @returns how many are left; below 0 so many were taken ahead of their time
   */
  readonly draw: (bucket: string, count: number, size: BucketSize) => Effect.Effect<number, FactsFault>;
  /** Whether words come as they are said; where not, there is `Look` every `lookMs`. */
  readonly hears: () => boolean;
  /**
   * Hears every word. The listener must not throw, nor wait.
   *
   * @returns ends it
   */
  readonly on: (listener: (word: Word) => void) => () => void;
}

/** What bounds the retries of all processes of a store together. */
export type SharedPacing = Pick<SharedFacts, "draw" | "spend">;

/** Most facts of a kind that are read at once. */
export const factsMax = 4_096;

/** From one look at everything to the next, in milliseconds: so long a word may be missed where none comes. */
export const lookMs = 15_000;
