/**
 * Stands in front of the hold of an attempt that goes on with shown text: nothing passes before the seam is proven, and from
 * there on only what is new.
 *
 * What it keeps back is never handed over and never frozen. It counts as decoded, because the provider has said it.
 */
import { none, type Observation } from "../../domain/Observation.ts";
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import type { SeamJoin, SeamPassed } from "../../seam/TextSeam.ts";
import { type AttemptEnd, failed } from "./AttemptEnd.ts";
import type { Batch } from "./Reveal.ts";

/** What a stage needs of its attempt. */
interface StageOwner {
  readonly facts: Pick<FactsFold, "decoded">;
  /** Called once, when the seam is proven. */
  readonly continued: () => void;
}

/** Joins the parts of one attempt to what was shown before it. */
export class SeamStage<P> {
  readonly #join: SeamJoin<P>;
  readonly #owner: StageOwner;
  #joined = false;

  constructor(join: SeamJoin<P>, owner: StageOwner) {
    this.#join = join;
    this.#owner = owner;
  }

  /**
   * Takes what has arrived, up to a part that says how the stream has failed, which passes as it came.
   *
   * @returns what may go on, or why the seam is not proven
   */
  take({ observations, parts }: Batch<P>): Batch<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    for (const [index, part] of parts.entries()) {
      const observation = observations[index] ?? none;
      if (observation.failure !== undefined && !observation.terminal) {
        fill(out, { parts: [part], observations: [observation] });
        break;
      }
      const fault = this.#passed(this.#join.take(part, observation), observation, out);
      if (fault !== undefined) return fault;
    }
    return out;
  }

  /**
   * The source has ended cleanly.
   *
   * @returns what was still kept back, or why the seam is not proven
   */
  end(): Batch<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    return this.#passed(this.#join.end(), undefined, out) ?? out;
  }

  #passed(passed: SeamPassed<P>, observation: Observation | undefined, out: Filling<P>): SeamFault | undefined {
    if (passed.type === "unproven") {
      // Its marker is not that of the response: what was shown has no end.
      if (observation !== undefined) this.#owner.facts.decoded({ ...observation, terminal: false });
      return passed.fault;
    }
    if (passed.joined && !this.#joined) {
      this.#joined = true;
      this.#owner.continued();
    }
    if (this.#joined && passed.parts.length > 0) fill(out, passed);
    // Text behind the seam counts when it leaves.
    else if (observation !== undefined)
      this.#owner.facts.decoded(this.#joined ? { ...observation, characters: 0 } : observation);
    return undefined;
  }
}

/** The end of an attempt whose seam is not proven. */
export const unproven = (fault: SeamFault): AttemptEnd =>
  failed({ kind: "protocol", reason: "seam_unproven", code: fault }, undefined);

interface Filling<P> extends Batch<P> {
  readonly parts: Array<P>;
  readonly observations: Array<Observation>;
}

const fill = <P>(out: Filling<P>, { observations, parts }: Batch<P>): void => {
  out.parts.push(...parts);
  out.observations.push(...observations);
};
