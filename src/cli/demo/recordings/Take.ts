/** Defines the takes of a recording: one unbroken, and one for each seeded position at which it is broken. */
import { createHash } from "node:crypto";
import type { Recording } from "./Recordings.ts";

/** The ways in which a recording is broken: by a TCP reset, by a FIN within the body, by a clean end of the body, or by silence. */
export const breakKinds = ["rst", "fin", "end", "stall"] as const;

/** Behaviours of a broken run's caller: hold text until the end, or show it at once and answer questions. */
const callers = [
  { name: "held back", reveal: "on_complete", answer: "retry" },
  { name: "live, retry", reveal: "live", answer: "retry" },
  { name: "live, accept", reveal: "live", answer: "accept" },
] as const;

/** One playback of a recording: whole or broken at one position, with the behaviour of its caller. */
export interface Take {
  readonly name: string;
  readonly kind: "whole" | (typeof breakKinds)[number];
  /** Bytes of the body before the break. */
  readonly at: number;
  readonly caller: (typeof callers)[number];
}

/** The take that is not broken. It is played once per recording. */
export const whole: Take = { name: "whole", kind: "whole", at: 0, caller: callers[1] };

/**
 * Returns the broken takes of a recording. The same seed gives the same positions, regardless of the other recordings.
 *
 * @param seed the seed of the break positions and of the caller's behaviour
 * @param cuts breaks of each kind
 * @param end highest break position, in bytes; no event before it looks like an end
 */
export const makeBrokenTakes = (recording: Recording, seed: number, cuts: number, end: number): ReadonlyArray<Take> =>
  breakKinds.flatMap((kind) =>
    Array.from({ length: cuts }, (_, index): Take => {
      const draw = (what: string) =>
        createHash("sha256").update(`${seed} ${recording.file} ${kind} ${index} ${what}`).digest().readUInt32BE() /
        2 ** 32;
      const caller = callers[Math.floor(draw("caller") * callers.length)] ?? callers[0];
      return { name: `${kind}-${index}`, kind, at: Math.floor(draw("place") * (end + 1)), caller };
    }),
  );
