/**
 * Taps: the hooks of an embedder into the output of a run.
 *
 * Output passes through a run in one direction, and each tap has its place:
 *
 * attempt → seam (join) → Reveal (hold) → PartFlow (count) → Handoff (tee) → reader
 *
 * The seam joins the parts of a continuation to the shown text. The hold withholds parts until they may be shown, and all parts while the
 * reader is away. The tee sees all output once and in order; if the run has a `room`, only while it is free.
 */
import type * as Effect from "effect/Effect";
import type { Observation } from "../../domain/Observation.ts";
import type { PartEvent, RunEvent } from "./RunEvent.ts";

/**
 * Receives events synchronously as they leave the run. It must not throw.
 *
 * @returns true if the tee consumes the events in place of the reader, which keeps waiting. False if the reader must receive them, because
 *   a socket has to drain first or the tee only keeps a copy. Further parts then wait in their slot until the reader pulls again.
 */
export type Tee<P> = (events: ReadonlyArray<RunEvent<P>>) => boolean;

/** Receives a part's observation in the step in which its event is created, before the event leaves. It must not throw. */
export type Weighed<P> = (event: PartEvent<P>, observation: Observation) => void;

/**
 * Backpressure of the output, for example from a socket that must drain. While the room is not free, nothing leaves the run or counts as
 * shown (L4). Parts wait in their slot, and the attempt stops reading.
 */
export interface Room {
  readonly isFree: () => boolean;
  /** Completes when the room is free again. A wait that never completes is interrupted. */
  readonly freed: Effect.Effect<void>;
}

/** A change of the reader: it left, it returned, or the parts held for it were evicted. */
export type ReaderWord = "left" | "back" | "evicted";

/** Notified synchronously of changes of the run's reader. The callback must not block or throw. */
export interface ReaderListener {
  readonly reader: (word: ReaderWord) => void;
}

/** Tells whether a run has a reader. While it has none, nothing is handed over (L4). */
export interface ReaderState {
  /** True if the run has no reader at the moment. */
  readonly isAway: boolean;
  /** True if output was discarded, so that no reader can receive the whole response any more. */
  readonly isEvicted: boolean;
  /** Bytes of output that are kept for a returning reader. They count towards the limits of held parts. */
  readonly keptBytes: number;
  /** Sets the listener of the run. */
  setListener(listener: ReaderListener): void;
  /** Drops the listener of an ended run, because the state outlives its run and must not keep it in memory (L11). */
  clearListener(listener: ReaderListener): void;
  /** Marks the run as evicted because the held parts exceed their limits. */
  evict(): void;
}

/** The optional taps of one run. The seam and the hold are not optional. */
export interface Taps<P> {
  readonly tee?: Tee<P>;
  readonly room?: Room;
  readonly weighed?: Weighed<P>;
  /** Tracks the run's reader; without it, the reader is always present. */
  readonly presence?: ReaderState;
}
