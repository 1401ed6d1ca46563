/**
 * Tracks the shown text of a run that may be continued.
 *
 * The *seam* is the place where a continuation joins the shown text. A *plan* says how to request the continuation and where it has to
 * join. A part *leaves* the run when the caller gets it.
 *
 * M1 Each part that leaves the run is reported to the seam once, in order and in the same step.
 * M2 A run sends at most `maxSeams` requests that continue shown text, including repeats, so that a persistent break is reported soon. A
 * request that was not sent or not processed does not count.
 * M3 After a seam that could not be proven, the run has no further seams, because the same model would get the same request.
 * M4 A plan is valid until another part leaves.
 * M5 A plan's position counts the text of one response. The caller's position counts the text it has kept of all responses of the run.
 */
import type { Observation } from "../../domain/Observation.ts";
import { SeamProof, SeamRefusal } from "../../domain/SeamWords.ts";
import type { SeamJoin, SeamPlan, TextSeam } from "../../seam/TextSeam.ts";
import type { BrokenAttempt } from "./Chain.ts";

/** Default maximum of requests with a seam per run. A third one would pay for a prompt whose response has broken three times. */
export const maxSeamsDefault = 2;

/** Reads the plan of a caller's seam. A plan that cannot be recorded counts as `unbuildable`. */
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
  /**
   * Length of the text of this response that the caller has, in UTF-16 code units (M5). `#before` holds the length for earlier responses.
   */
  #own = 0;
  #before = 0;

  /**
   * @param make creates the seam of this run
   * @param max maximum requests with a seam
   */
  constructor(make: () => TextSeam<P>, max = maxSeamsDefault) {
    this.#make = make;
    this.#max = max;
  }

  /** The attempt that the newest seam continues. */
  get interruptedAttempt(): BrokenAttempt<P> | undefined {
    return this.#interrupted;
  }

  /** Called when a part leaves the run (M1). */
  recordSent(part: P, observation: Observation): void {
    if (observation.shows === "text") this.#own += observation.characters;
    this.#safely((seam) => seam.left(part, observation));
  }

  /** Length of the text of earlier responses that the caller has kept, in UTF-16 code units (M5). */
  get before(): number {
    return this.#before;
  }

  /**
   * Begins another response.
   *
   * @param keeps true if the caller keeps the text of the previous response, as in a continuation but not in a replay
   */
  beginResponse(keeps: boolean): void {
    this.#interrupted = undefined;
    if (keeps) this.#before += this.#own;
    this.#own = 0;
    this.#safely((seam) => seam.begins());
  }

  /** Plans the continuation of the text that has left the run, or returns the reason why there is none (M2, M3, M4). */
  plan(): SeamPlan | SeamRefusal {
    if (this.#closed !== undefined) return this.#closed;
    if (this.#count >= this.#max) return "seams_spent";
    this.#plan ??= readPlan(this.#safely((seam) => seam.plan()));
    return this.#plan;
  }

  /** True if the same continuation may be sent again (M2). */
  get mayRepeat(): boolean {
    return this.#count < this.#max;
  }

  /** Counts a continuation that is launched (M2). */
  countContinuation(broken: BrokenAttempt<P>): void {
    this.#count += 1;
    this.#interrupted = broken;
  }

  /** Counts a continuation that is launched again (M2). */
  countRepeat(): void {
    this.#count += 1;
  }

  /** Called when a continuation was not sent or not processed, so that it does not count (M2). */
  uncountContinuation(): void {
    this.#count -= 1;
  }

  /** Starts to join the parts of an attempt. If the seam fails to start, nothing is joined. */
  join(plan: SeamPlan): SeamJoin<P> {
    return this.#safely((seam) => seam.joins(plan)) ?? { take: unwritable, end: unwritable };
  }

  /** Restores the number of requests with a seam that are on record (M2). */
  restore(count: number): void {
    this.#count = count;
  }

  /** Called when the provider has rejected the prefill of a plan. The request then does not count. */
  onPrefillRefused(plan: SeamPlan): void {
    this.uncountContinuation();
    this.#safely((seam) => seam.refused(plan));
  }

  /** Called when a seam could not be proven (M3). */
  giveUp(): void {
    this.#closed ??= "unproven";
  }

  /** Releases the shown text (L11). */
  onRunEnd(): void {
    this.#made = undefined;
    this.#interrupted = undefined;
    this.#plan = undefined;
    this.#closed ??= "no_seam";
  }

  /** Calls the caller's seam. A seam that throws is not used again, because its state is unknown. */
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
