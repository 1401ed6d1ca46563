/**
 * Describes facts that the processes of one store share, in addition to its runs. The processes do not know each other: everything that
 * must hold across them is a row.
 *
 * A fact is a row with a kind and a key, and it expires. A notification only tells its receivers to read the rows. A process that misses a
 * notification finds the rows at its next poll, so a lost notification only adds latency. No value contains a prompt or a credential: keys
 * are digests under a secret of the store's processes.
 */
import type * as Effect from "effect/Effect";
import type * as Redacted from "effect/Redacted";

/**
 * Kinds of facts. Putting one of `toldKinds` notifies all processes. `owner` holds the token that a stored response belongs to; `failed`
 * holds the spending of a failed request and `told` the response that its client received; `gateway` holds the address of a gateway.
 */
export type FactKind = "failed" | "told" | "owner" | "gateway" | ToldKind;

/**
 * Kinds that every process must learn soon: a wait that a provider announced (`cooldown`), and a cancel of a run (`cancel`). Workers and
 * gateways with an address also put runs whose clients have left (`held`), and workers put a path that they have reached or lost (`path`).
 */
export const toldKinds = ["cooldown", "cancel", "held", "path"] as const;

/** A kind of fact that causes notifications. */
export type ToldKind = (typeof toldKinds)[number];

/** Error of a fact operation: the store is unavailable. */
export interface FactsFault {
  readonly message: string;
}

/** A stored fact. Its times are by the clock of the store. */
export interface Fact {
  readonly key: string;
  /** JSON that the process wrote when it put the fact. */
  readonly value: string;
  /** The process that put the fact. */
  readonly node: string;
  /** Unique for each put, even if the key is the same. */
  readonly stamp: string;
  /** Time since the fact was put, in milliseconds. */
  readonly ageMs: number;
  /** Time until the fact expires, in milliseconds. */
  readonly leftMs: number;
}

/** Retries and tokens that a group of runs has spent of its shared budget. */
export interface GroupSpent {
  readonly retries: number;
  readonly tokens: number;
}

/** Capacity of a bucket, and the rate at which it refills. */
export interface BucketSize {
  readonly max: number;
  readonly perSecond: number;
}

/** A notification that the processes of a store send each other. */
export type Word =
  /** A fact of a kind was put. */
  | { readonly _tag: "Put"; readonly kind: ToldKind }
  /** A question of a run was answered. */
  | { readonly _tag: "Answered"; readonly run_id: string }
  /** A notification may have been missed, so listeners must read everything. Sent periodically, and after a lost connection is restored. */
  | { readonly _tag: "Look" };

/** Operations on the shared facts of a store. */
export interface SharedFacts {
  /** Unique name of this process, never reused. */
  readonly node: string;
  /** Secret that only the processes of the store know. It is created once, with the tables. */
  readonly secret: Redacted.Redacted<string>;
  /** Puts a fact, replacing the one with the same kind and key. Notifies every process if the kind is one of `toldKinds`. */
  readonly put: (kind: FactKind, key: string, value: string, keepMs: number) => Effect.Effect<void, FactsFault>;
  /** Finds a fact that has not expired. */
  readonly find: (kind: FactKind, key: string) => Effect.Effect<Fact | undefined, FactsFault>;
  /** Deletes a fact and returns it. If several callers take it concurrently, only one gets it. */
  readonly take: (kind: FactKind, key: string) => Effect.Effect<Fact | undefined, FactsFault>;
  /** Lists the newest facts of a kind that have not expired, at most `factsMax`. */
  readonly all: (kind: FactKind) => Effect.Effect<ReadonlyArray<Fact>, FactsFault>;
  /**
   * Adds to the spending of a group of runs, atomically across processes.
   *
   * @returns the new total
   */
  readonly spend: (group: string, spent: GroupSpent, keepMs: number) => Effect.Effect<GroupSpent, FactsFault>;
  /**
   * Draws tokens from a bucket that refills over time, atomically across processes. A new bucket is full.
   *
   * @param count number of tokens to draw; a negative number returns tokens
   * @returns the tokens left; negative if more tokens were drawn than the bucket had
   */
  readonly draw: (bucket: string, count: number, size: BucketSize) => Effect.Effect<number, FactsFault>;
  /** True if notifications arrive as they are sent. Otherwise only `Look` arrives, every `lookMs`. */
  readonly hasNotifications: () => boolean;
  /**
   * Adds a listener for every notification. The listener must neither throw nor wait.
   *
   * @returns a function that removes the listener
   */
  readonly on: (listener: (word: Word) => void) => () => void;
}

/** The facts that limit the retries of all processes of a store together. */
export type SharedPacing = Pick<SharedFacts, "draw" | "spend">;

/** Maximum facts of a kind that one read returns. */
export const factsMax = 4_096;

/** Time between two polls of all facts, in milliseconds. It bounds the delay of a missed notification. */
export const lookMs = 15_000;
