/**
 * Moves whole runs from store to store as they are: what a run's record says stays, and who drives it does not.
 *
 * A digest counts only under the key that it was made with. An empty store therefore takes the key of the first runs that it is
 * given. A store with runs and a key of its own takes what has ended, and refuses an open run whose transcript it could never
 * compare.
 */
import type * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";

/** A run as its store keeps it. */
export interface KeptRun {
  readonly record: RunRecord;
  /** A process that counts as living drives the run or has claimed it. */
  readonly isDriven: boolean;
}

/** Runs in the order in which they were put on record. */
export interface RunPage {
  readonly runs: ReadonlyArray<KeptRun>;
  /** Ids of runs whose rows cannot be read. */
  readonly damaged: ReadonlyArray<string>;
  /** Where the next page begins; undefined behind the last one. */
  readonly next: number | undefined;
}

/**
 * What became of a run that a store was given. `same`: it was there already, as it is. `differs`: another record of this id is
 * there, and stays. `foreign_key`: it is open, and its transcript's digest is under another key than the store's. `unkept`: the
 * store's database does not keep its id.
 */
export type Taken = "added" | "same" | "differs" | "foreign_key" | "unkept";

/** How runs leave a store and come into one. */
export interface RunTransfer {
  /** The key of the store's digests, as hex. */
  readonly key: Effect.Effect<string, RecorderError>;
  /**
   * Reads runs, the oldest first.
   *
   * @param from `next` of the page before; undefined begins
   */
  readonly page: (from: number | undefined, limit: number) => Effect.Effect<RunPage, RecorderError>;
  /**
   * Puts runs on record, all in one transaction, and says what became of each. No process drives them then.
   *
   * @param key the key of their store's digests, as hex
   * @param dryRun puts nothing on record, and says what would become of each
   */
  readonly put: (
    key: string,
    records: ReadonlyArray<RunRecord>,
    dryRun?: boolean,
  ) => Effect.Effect<ReadonlyArray<Taken>, RecorderError>;
}

// Kept beside the service: what a program's own recorder does is for its own store.
const transfers = new WeakMap<object, RunTransfer>();

/** Says that the store of this very recorder gives and takes whole runs. */
export const transferring = <Recorder extends object>(recorder: Recorder, transfer: RunTransfer): Recorder => {
  transfers.set(recorder, transfer);
  return recorder;
};

/** How the store of a recorder gives and takes whole runs; undefined where it does not. */
export const transferOf = (recorder: object): RunTransfer | undefined => transfers.get(recorder);

/** Whether two records say the same, whatever the order of their members. */
export const isSameRecord = (one: RunRecord, other: RunRecord): boolean =>
  // Both were read by the same schema, which mostly gives one order.
  one === other || JSON.stringify(one) === JSON.stringify(other) || ordered(one) === ordered(other);

const ordered = (record: RunRecord): string =>
  JSON.stringify(record, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : value,
  );
