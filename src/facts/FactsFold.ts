/**
 * Describes the fold that turns what is observed of an attempt into its facts: what it takes and what it can be told.
 */
import type { AttemptFacts, Delivery } from "../domain/AttemptFacts.ts";
import type { Observation } from "../domain/Observation.ts";
import type { SideEffects, ToolBoundary } from "../domain/SideEffects.ts";

/** What a fold has to know of its attempt before it starts. */
export interface FactsOptions {
  /** The boundary before the attempt; `null` = missing. */
  readonly sideEffects: SideEffects | null;
  /** Whether the caller can throw away what it was shown. If not, every part but a quiet one counts as text. */
  readonly discardable: boolean;
  /** What the request declares of its tools. */
  readonly boundaries: ReadonlyArray<ToolBoundary>;
  /** The proof that every declared runtime tool was made by ToolGuard. */
  readonly guarded: boolean;
  /** The facts of an attempt of an earlier process, which this fold goes on from. */
  readonly from?: AttemptFacts;
}

/** The growing facts of one attempt. All methods are synchronous; none fails. */
export interface FactsFold {
  /** Counts what is known when a part was decoded. Returns whether anything but counters changed. */
  readonly decoded: (o: Observation) => boolean;
  /** Counts what is known when the caller got a part. Returns whether `shown` rose, text came behind a call, or a call's row changed. */
  readonly handedOver: (o: Observation) => boolean;
  /** Counts parts that are decoded and handed over in one step, each in its turn: the way of every part of a reader that waits. */
  readonly passed: (parts: ReadonlyArray<Observation>) => void;
  /**
   * Whether handing the part over raises what must be on record first (law L8): `shown`, text behind a call, a runtime call's
   * row, or the row of a call that the provider runs and that no earlier part told of.
   */
  readonly wouldShow: (o: Observation) => boolean;
  /** The request got at least so far. Returns whether that is news. */
  readonly delivery: (d: Delivery) => boolean;
  /** Counts bytes that were read. */
  readonly bytes: (n: number) => void;
  /**
   * A runtime call's handler is about to start. Returns whether a row changed.
   *
   * @param call the key, `choice.ordinal`
   * @param tool the tool's name, which a call that the stream has not handed over yet is added with
   */
  readonly dispatched: (call: string, tool?: string) => boolean;
  /** A dispatched call ended and nobody knows how. Returns whether a row changed. */
  readonly outcomeUnknown: (call: string, tool?: string) => boolean;
  /** A runtime call has its outcome, good or bad. Returns whether a row changed. */
  readonly settled: (call: string, tool?: string) => boolean;
  /** The clock jumped by so many milliseconds while the attempt ran. */
  readonly suspended: (ms: number) => void;
  /** The facts so far, immutable. The same object until something changes. */
  readonly snapshot: () => AttemptFacts;
}
