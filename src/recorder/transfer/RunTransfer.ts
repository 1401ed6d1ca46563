/**
 * Moves whole runs between stores. The record stays the same, but the run loses its owner.
 *
 * A digest is valid only under the key that made it. So an empty store adopts the key of the first runs that it receives. A store that
 * already has runs under another key accepts ended runs, but refuses an open run with a transcript digest, because it could never compare
 * that digest.
 */
import type * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";

/** A run as stored. */
export interface KeptRun {
  readonly record: RunRecord;
  /** True if a live process owns or has claimed the run. */
  readonly isDriven: boolean;
}

/** A page of runs, in the order in which they were put on record. */
export interface RunPage {
  readonly runs: ReadonlyArray<KeptRun>;
  /** Ids of runs whose rows cannot be read. */
  readonly damaged: ReadonlyArray<string>;
  /** Start of the next page; undefined after the last one. */
  readonly next: number | undefined;
}

/**
 * The result for a run that a store received. `same`: the run was already there, unchanged. `differs`: another record with this id is
 * there, and stays. `foreign_key`: the run is open, and the digest of its transcript uses another key than the store's. `unkept`: the
 * store's database cannot store the id of the run.
 */
export type Taken = "added" | "same" | "differs" | "foreign_key" | "unkept";

/** Exports the runs of a store, and imports runs of other stores into it. */
export interface RunTransfer {
  /** The key of the store's digests, in hex. */
  readonly key: Effect.Effect<string, RecorderError>;
  /**
   * Reads runs, oldest first.
   *
   * @param from `next` of the previous page; undefined starts at the beginning
   */
  readonly readPage: (from: number | undefined, limit: number) => Effect.Effect<RunPage, RecorderError>;
  /**
   * Imports runs in one transaction, and returns the result for each run. The imported runs have no owner.
   *
   * @param key the key of the digests in the source store, in hex
   * @param dryRun true to return the results without importing any run
   */
  readonly insertRuns: (
    key: string,
    records: ReadonlyArray<RunRecord>,
    dryRun?: boolean,
  ) => Effect.Effect<ReadonlyArray<Taken>, RecorderError>;
}

// Not part of the `RunRecorder` service, so that custom recorders need not implement transfers.
const transfers = new WeakMap<object, RunTransfer>();

/** Attaches to a recorder the operations that transfer whole runs. */
export const withTransfer = <Recorder extends object>(recorder: Recorder, transfer: RunTransfer): Recorder => {
  transfers.set(recorder, transfer);
  return recorder;
};

/** Returns the operations that transfer a recorder's whole runs; undefined if it has none. */
export const transferOf = (recorder: object): RunTransfer | undefined => transfers.get(recorder);

/** Returns true if two records are equal, regardless of the order of their members. */
export const isSameRecord = (one: RunRecord, other: RunRecord): boolean =>
  // Records decoded with the same schema usually have their keys in the same order, so the cheap comparison comes first.
  one === other || JSON.stringify(one) === JSON.stringify(other) || canonicalJson(one) === canonicalJson(other);

const canonicalJson = (record: RunRecord): string =>
  JSON.stringify(record, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : value,
  );
