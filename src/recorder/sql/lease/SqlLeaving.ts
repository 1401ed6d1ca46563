/**
 * Holds the runs that a process gives back, from before the statement for it is sent until its end is known.
 *
 * One statement at a time is under way for a run: a second one would take the run from whoever has claimed it in this process behind the
 * first. Each knows the run as it was driven when it began, and says nothing of one that began later.
 */

/** A run that is to be given back. */
interface Leaving<A> {
  /** As it was driven when that began. */
  readonly as: A;
  /** A statement for it has been sent, and its end is not known. */
  readonly isUnderWay: boolean;
}

/** The runs that are to be given back, or were to be while the store took nothing. */
export class SqlLeaving<A extends object> {
  /** At most as many as this process drives. */
  readonly #runs = new Map<string, Leaving<A>>();

  get all(): ReadonlyArray<string> {
    return [...this.#runs.keys()];
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** A statement is sent. Returns false where one is under way. */
  begins(runId: string, as: A): boolean {
    if (this.#runs.get(runId)?.isUnderWay === true) return false;
    this.#runs.set(runId, { as, isUnderWay: true });
    return true;
  }

  /** The statement has taken effect. */
  done(runId: string, as: A): void {
    if (this.#runs.get(runId)?.as === as) this.#runs.delete(runId);
  }

  /** The statement has failed, as far as this process knows: the run is given back later, where it is still driven. */
  failed(runId: string, as: A, isDriven: boolean): void {
    if (this.#runs.get(runId)?.as !== as) return;
    if (isDriven) this.#runs.set(runId, { as, isUnderWay: false });
    else this.#runs.delete(runId);
  }

  /** The run is not driven any more, for another reason. */
  forget(runId: string): void {
    if (this.#runs.get(runId)?.isUnderWay === false) this.#runs.delete(runId);
  }

  clear(): void {
    this.#runs.clear();
  }
}
