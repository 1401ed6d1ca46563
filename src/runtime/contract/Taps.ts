/**
 * Describes the taps of a run's output.
 *
 * Everything that leaves a run takes one straight way, and each tap has its place on it:
 *
 *     attempt → seam (join) → Reveal (hold) → PartFlow (count) → Handoff (tee) → reader
 *
 * The seam joins the parts of a continuation to what was shown. The hold keeps parts back until they may be shown, and all of them
 * while the reader is away. The tee sees what leaves, in order and once; where it has a room, only while there is one.
 */
import type * as Effect from "effect/Effect";
import type { Observation } from "../../domain/Observation.ts";
import type { Presence } from "./Presence.ts";
import type { PartEvent, RunEvent } from "./RunEvent.ts";

/**
 * Sees events in the very step in which they leave the run, without an effect in between. It must not throw.
 *
 * @returns true where it takes the events in the reader's stead: the reader goes on waiting. False where the reader is to have
 *   them (a socket that must drain first, a copy that is kept beside the reader): until the reader asks again, parts wait in
 *   their slot.
 */
export type Tee<P> = (events: ReadonlyArray<RunEvent<P>>) => boolean;

/** Hears what a part proves in the step in which its event is made, before the event leaves. It must not throw. */
export type Weighed<P> = (event: PartEvent<P>, observation: Observation) => void;

/**
 * Says whether there is a place for what leaves: a socket that must drain first has none. Without one nothing leaves, so that nothing
 * counts as shown (L4): parts wait in their slot, and the attempt reads no more.
 */
export interface Room {
  readonly isFree: () => boolean;
  /** Done once it is free again; it may be waited for in vain, and is interrupted then. */
  readonly freed: Effect.Effect<void>;
}

/** The taps that are set for one run; seam and hold are always there. */
export interface Taps<P> {
  readonly tee?: Tee<P>;
  readonly room?: Room;
  readonly weighed?: Weighed<P>;
  /** Whether somebody reads the run; left out, its reader is always there. */
  readonly presence?: Presence;
}
