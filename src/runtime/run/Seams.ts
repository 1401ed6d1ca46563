/**
 * Holds what a run knows of text that was shown and may go on.
 *
 * M1 What has left is told to the seam once, in order, in the step in which it leaves.
 * M2 A run sends at most `maxSeams` requests that go on with shown text, repeats included: a break that persists is told soon. One that
 *    was not sent, or not processed, does not count.
 * M3 A seam that could not be proven ends all seams of the run: the same model would be asked the same again.
 * M4 A plan holds until something more has left.
 * M5 Its text is that of one response. The caller counts the text of all responses of the run that it has kept.
 */
import type { Observation } from "../../domain/Observation.ts";
import { SeamProof, SeamRefusal } from "../../domain/SeamWords.ts";
import type { SeamJoin, SeamPlan, TextSeam } from "../../seam/TextSeam.ts";
import type { BrokenAttempt } from "./Chain.ts";

/** Requests with a seam of a run that says nothing else. One more would pay for a prompt whose response has broken three times. */
export const maxSeamsDefault = 2;

/** What a seam of the caller's says of its plan, as far as a record can hold it. */
const readPlan = (plan: SeamPlan | SeamRefusal | undefined): SeamPlan | SeamRefusal => {
  if (typeof plan === "string" && SeamRefusal.literals.includes(plan)) return plan;
  if (typeof plan !== "object" || !SeamProof.literals.includes(plan.proof) || typeof plan.quote !== "string")
    return "unbuildable";
  return Number.isSafeInteger(plan.at) && plan.at >= 0 ? plan : "unbuildable";
};

const unwritable = () => ({ type: "unproven", fault: "unwritable" }) as const;

/** The seams of one run. */
export class Seams<P> {
  readonly #make: () => TextSeam<P>;
  readonly #max: number;
  #made: TextSeam<P> | undefined;
  #plan: SeamPlan | SeamRefusal | undefined;
  #count = 0;
  #closed: SeamRefusal | undefined;
  #interrupted: BrokenAttempt<P> | undefined;
  /** Text that the caller has of this response, and of those before it, in UTF-16 code units (M5). */
  #own = 0;
  #before = 0;

  /**
   * @param make makes the seam of this run
   * @param max most requests with a seam
   */
  constructor(make: () => TextSeam<P>, max = maxSeamsDefault) {
    this.#make = make;
    this.#max = max;
  }

  /** The attempt that the newest seam goes on from. */
  get interrupted(): BrokenAttempt<P> | undefined {
    return this.#interrupted;
  }

  /** A part leaves (M1). */
  left(part: P, observation: Observation): void {
    if (observation.shows === "text") this.#own += observation.characters;
    this.#safely((seam) => seam.left(part, observation));
  }

  /** Text that the caller has kept of earlier responses, in UTF-16 code units (M5). */
  get before(): number {
    return this.#before;
  }

  /**
   * Begins another response.
   *
   * @param keeps the caller keeps the text of the response before, which a continuation does and a replay does not
   */
  begins(keeps: boolean): void {
    this.#interrupted = undefined;
    if (keeps) this.#before += this.#own;
    this.#own = 0;
    this.#safely((seam) => seam.begins());
  }

  /** How the run would go on with what has left, or why it does not (M2, M3, M4). */
  plan(): SeamPlan | SeamRefusal {
    if (this.#closed !== undefined) return this.#closed;
    if (this.#count >= this.#max) return "seams_spent";
    this.#plan ??= readPlan(this.#safely((seam) => seam.plan()));
    return this.#plan;
  }

  /** True while the same continuation may be sent once more (M2). */
  get mayRepeat(): boolean {
    return this.#count < this.#max;
  }

  /** A continuation is launched (M2). */
  goesOn(broken: BrokenAttempt<P>): void {
    this.#count += 1;
    this.#interrupted = broken;
  }

  /** The same continuation is launched once more (M2). */
  repeats(): void {
    this.#count += 1;
  }

  /** A continuation was not sent, or not processed (M2). */
  gaveBack(): void {
    this.#count -= 1;
  }

  /** What joins the parts of an attempt. Where none can be made, nothing is joined. */
  joins(plan: SeamPlan): SeamJoin<P> {
    return this.#safely((seam) => seam.joins(plan)) ?? { take: unwritable, end: unwritable };
  }

  /** The run goes on from its record, with so many requests behind it (M2). */
  restored(count: number): void {
    this.#count = count;
  }

  /** The provider has refused the prefill of a plan: that was no seam. */
  refused(plan: SeamPlan): void {
    this.gaveBack();
    this.#safely((seam) => seam.refused(plan));
  }

  /** A seam could not be proven (M3). */
  giveUp(): void {
    this.#closed ??= "unproven";
  }

  /** The run has ended: what was shown is let go (L11). */
  ended(): void {
    this.#made = undefined;
    this.#interrupted = undefined;
    this.#plan = undefined;
    this.#closed ??= "no_seam";
  }

  /** A seam of the caller's that throws joins nothing any more: what it says of the text is not known. */
  #safely<A>(use: (seam: TextSeam<P>) => A): A | undefined {
    if (this.#closed === "unbuildable" || this.#closed === "no_seam") return undefined;
    this.#plan = undefined;
    try {
      this.#made ??= this.#make();
      return use(this.#made);
    } catch {
      this.#closed = "unbuildable";
      return undefined;
    }
  }
}
