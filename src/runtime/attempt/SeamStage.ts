/**
 * Checks the parts of an attempt that continues shown text, before they are held or handed over. Nothing passes until the seam (the place
 * where the new text joins the shown text) is proven, and then only new text.
 *
 * Text that the stage withholds is never handed over or frozen. It counts as decoded, because the provider has sent it.
 */
import { none, type Observation } from "../../domain/Observation.ts";
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import type { SeamJoin, SeamPassed } from "../../seam/TextSeam.ts";
import { type AttemptEnd, failureEnd } from "./AttemptEnd.ts";
import type { Batch } from "./Reveal.ts";

/** Services that an attempt provides to its stage. */
interface StageOwner {
  readonly facts: Pick<FactsFold, "decoded">;
  /** Called once, when the seam is proven. */
  readonly onContinued: () => void;
}

/** Joins the parts of one attempt to the text shown before it. */
export class SeamStage<P> {
  readonly #join: SeamJoin<P>;
  readonly #owner: StageOwner;
  #joined = false;

  constructor(join: SeamJoin<P>, owner: StageOwner) {
    this.#join = join;
    this.#owner = owner;
  }

  /**
   * Takes parts up to the first one that reports a failure, which passes unchanged.
   *
   * @returns the parts that may pass, or the reason why the seam is not proven
   */
  take({ observations, parts }: Batch<P>): Batch<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    for (const [index, part] of parts.entries()) {
      const observation = observations[index] ?? none;
      if (observation.failure !== undefined && !observation.terminal) {
        fill(out, { parts: [part], observations: [observation] });
        break;
      }
      const fault = this.#apply(this.#join.take(part, observation), observation, out);
      if (fault !== undefined) return fault;
    }
    return out;
  }

  /**
   * Handles a clean end of the source.
   *
   * @returns the parts that were still withheld, or the reason why the seam is not proven
   */
  end(): Batch<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    return this.#apply(this.#join.end(), undefined, out) ?? out;
  }

  #apply(passed: SeamPassed<P>, observation: Observation | undefined, out: Filling<P>): SeamFault | undefined {
    if (passed.type === "unproven") {
      // This marker does not end the shown response, so it does not count as terminal.
      if (observation !== undefined) this.#owner.facts.decoded({ ...observation, terminal: false });
      return passed.fault;
    }
    if (passed.joined && !this.#joined) {
      this.#joined = true;
      this.#owner.onContinued();
    }
    if (this.#joined && passed.parts.length > 0) fill(out, passed);
    // New text is not counted here, because it is counted when it is handed over.
    else if (observation !== undefined)
      this.#owner.facts.decoded(this.#joined ? { ...observation, characters: 0 } : observation);
    return undefined;
  }
}

/** Makes the end of an attempt whose seam is not proven. */
export const unproven = (fault: SeamFault): AttemptEnd =>
  failureEnd({ kind: "protocol", reason: "seam_unproven", code: fault }, undefined);

interface Filling<P> extends Batch<P> {
  readonly parts: Array<P>;
  readonly observations: Array<Observation>;
}

const fill = <P>(out: Filling<P>, { observations, parts }: Batch<P>): void => {
  out.parts.push(...parts);
  out.observations.push(...observations);
};
