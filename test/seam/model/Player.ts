/**
 * Plays one continuation to the verifier, as a runtime does: in pieces that are cut anywhere.
 */
import type { Anchor } from "../../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../../src/seam/SeamVerifier.ts";
import type { Dice } from "../../simulation/Dice.ts";

/** The end of a response. */
export type Ending = "stops" | "breaks" | "calls";

/** The result of a continuation. */
export interface Played {
  /** The text that has left after the shown text. */
  readonly released: string;
  /** `open`: the connection broke before anything was decided. */
  readonly verdict: "joined" | "open" | "unproven";
  readonly fault: string | undefined;
  /** Length of the new text that was read until the refusal, without leading white space. */
  readonly read: number;
}

/** The text to continue, and the way to do so. */
export interface Start {
  readonly shown: string;
  readonly anchor: Anchor;
  readonly proof: "anchor" | "prefill";
  readonly echoes?: boolean;
}

/** The sizes of pieces: single units where a refusal is waited for, then whatever a provider sends. */
export const sizes =
  (dice: Dice) =>
  (at: number): number =>
    at < 24
      ? 1
      : dice.weighted([
          [3, dice.between(1, 6)],
          [2, dice.between(7, 60)],
          [1, 4_000],
        ]);

/** Plays what a model says. */
export const play = (start: Start, said: string, ending: Ending, size: (at: number) => number): Played => {
  const { anchor, echoes, proof, shown } = start;
  const verifier = SeamVerifier.make({ run: shown, anchor, proof, ...(echoes === true ? { echoes } : {}) });
  let released = "";
  let step: SeamVerifier.SeamStep = { type: "wait" };
  let at = 0;
  while (at < said.length && step.type !== "unproven") {
    const piece = said.slice(at, at + size(at));
    at += piece.length;
    step = verifier.take(piece);
    if (step.type === "joined") released += step.text;
  }
  if (step.type !== "unproven" && ending !== "breaks") {
    step = ending === "stops" ? verifier.stop() : verifier.close();
    if (step.type === "joined") released += step.text;
    if (step.type === "joined") step = ending === "stops" ? verifier.stop() : verifier.close();
  }
  return {
    released,
    verdict: step.type === "wait" ? "open" : step.type,
    fault: step.type === "unproven" ? step.fault : undefined,
    read: at - (said.length - said.trimStart().length),
  };
};
