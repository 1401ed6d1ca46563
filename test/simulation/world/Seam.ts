/**
 * Joins the texts of a simulated provider. The scenario says how many parts of a continuation are the anchor, and when it goes wrong.
 */
import type { Observation } from "../../../src/domain/Observation.ts";
import type { RunSeam } from "../../../src/runtime/contract/RunOptions.ts";
import type { SeamJoin, SeamPassed, TextSeam } from "../../../src/seam/TextSeam.ts";
import * as Seam from "../../../src/stages/seam/Seam.ts";
import type { Part } from "../Journal.ts";
import type { World } from "../Scenario.ts";

export const seamOf = ({ anchor, behind, proof }: NonNullable<World["seam"]>): RunSeam<Part> =>
  Seam.of((): TextSeam<Part> => {
    let shown = 0;
    let by = proof;
    return {
      begins: () => {
        shown = 0;
      },
      left: (_, says) => {
        if (says.shows === "text") shown += says.characters;
      },
      plan: () => (shown === 0 ? "blank" : { proof: by, at: shown, quote: "the end of what was shown" }),
      joins: () => new Join(anchor, behind),
      refused: () => {
        by = "anchor";
      },
    };
  });

class Join implements SeamJoin<Part> {
  #before: number;
  #behind: number | null;

  constructor(before: number, behind: number | null) {
    this.#before = before;
    this.#behind = behind;
  }

  take(part: Part, says: Observation): SeamPassed<Part> {
    if (part.serial !== undefined && this.#before > 0) {
      if (says.calls.length > 0) return { type: "unproven", fault: "not_text" };
      if (says.terminal) return { type: "unproven", fault: "stopped" };
      this.#before -= 1;
      return waiting;
    }
    if (this.#before > 0) return waiting;
    if (part.serial !== undefined && this.#behind !== null) {
      if (this.#behind === 0) return { type: "unproven", fault: "repeats" };
      this.#behind -= 1;
    }
    return { type: "passed", parts: [part], observations: [says], joined: true };
  }

  end(): SeamPassed<Part> {
    return this.#before > 0 ? { type: "unproven", fault: "stopped" } : { ...waiting, joined: true };
  }
}

const waiting = { type: "passed", parts: [], observations: [], joined: false } as const;
