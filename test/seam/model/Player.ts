/**
 * Plays one continuation to the verifier, as a runtime does: in pieces that are cut anywhere.
 */
import type { Anchor } from "../../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../../src/seam/SeamVerifier.ts";
import type { Dice } from "../../simulation/Dice.ts";

/** How a response ends. */
export type Ending = "stops" | "breaks" | "calls";

/** What became of a continuation. */
export interface Played {
  /** What has left behind the shown text. */
  readonly released: string;
  /** `open`: the connection broke before anything was decided. */
  readonly verdict: "joined" | "open" | "unproven";
  readonly fault: string | undefined;
  /** How much of the new text was read until it was refused, without the white space in front. */
  readonly read: number;
}

/** What is gone on with, and how. */
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
