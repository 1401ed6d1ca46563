/**
 * Says in which ways a recording is played: whole, and broken at places that a seed gives.
 */
import { createHash } from "node:crypto";
import type { Recording } from "./Recordings.ts";

/** How a recording is broken. */
export const breakKinds = ["rst", "fin", "end", "stall"] as const;

/** What the caller of a broken run does: it holds back, or it shows at once and answers questions. */
const callers = [
  { name: "held back", reveal: "on_complete", answer: "retry" },
  { name: "live, retry", reveal: "live", answer: "retry" },
  { name: "live, accept", reveal: "live", answer: "accept" },
] as const;

/** One way to play a recording. */
export interface Take {
  readonly name: string;
  readonly kind: "whole" | (typeof breakKinds)[number];
  /** Bytes of the body before the break. */
  readonly at: number;
  readonly caller: (typeof callers)[number];
}

/** The recording as it is. */
export const whole: Take = { name: "whole", kind: "whole", at: 0, caller: callers[1] };

/**
 * The broken takes of a recording: the same seed gives the same places, whatever else is played.
 *
 * @param recording one row of the manifest
 * @param seed says where it breaks and what the caller does
 * @param cuts breaks of each kind
 * @param end highest place, in bytes: before it nothing in the recording looks like an end
 */
export const broken = (recording: Recording, seed: number, cuts: number, end: number): ReadonlyArray<Take> =>
  breakKinds.flatMap((kind) =>
    Array.from({ length: cuts }, (_, index): Take => {
      const draw = (what: string) =>
        createHash("sha256").update(`${seed} ${recording.file} ${kind} ${index} ${what}`).digest().readUInt32BE() /
        2 ** 32;
      const caller = callers[Math.floor(draw("caller") * callers.length)] ?? callers[0];
      return { name: `${kind}-${index}`, kind, at: Math.floor(draw("place") * (end + 1)), caller };
    }),
  );
