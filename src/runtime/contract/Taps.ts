/**
 * Describes the taps of a run's output.
 *
 * Everything that leaves a run takes one straight way, and each tap has its place on it:
 *
 *     attempt → Reveal (hold) → PartFlow (count, then rewrite) → Handoff (tee) → reader
 *
 * The hold keeps parts back until they may be shown. The rewrite changes what a part looks like to the reader, and nothing of
 * what the run knows: facts and record speak of the part that the provider sent. The tee sees what leaves, in order and once.
 */
import type { Observation } from "../../domain/Observation.ts";
import type { RunEvent } from "./RunEvent.ts";

/**
 * Rewrites a part in the step in which it is handed over, and so never one that is withdrawn unseen. It must not throw.
 *
 * @param attempt the attempt that the part is of
 * @returns what the reader gets in place of the part: nothing, one part or more. A part that makes a call whole cannot be left
 *   out: its caller has to hear of the call.
 */
export type Rewrite<P> = (part: P, observation: Observation, attempt: number) => ReadonlyArray<P>;

/**
 * Sees events in the very step in which they leave the run, without an effect in between. It must not throw.
 *
 * @returns true where it takes the events in the reader's stead: the reader goes on waiting. False where the reader is to have
 *   them (a socket that must drain first, a copy that is kept beside the reader): until the reader asks again, parts wait in
 *   their slot.
 */
export type Tee<P> = (events: ReadonlyArray<RunEvent<P>>) => boolean;

/** The taps that are set for one run; the hold is always there. */
export interface Taps<P> {
  readonly rewrite?: Rewrite<P>;
  readonly tee?: Tee<P>;
}
