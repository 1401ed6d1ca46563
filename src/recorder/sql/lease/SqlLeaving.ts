/**
 * Tracks the runs that a process is releasing, from before their statement is sent until its outcome is known.
 *
 * Each run has at most one statement in flight: a second could release the run after this process has claimed it again. A
 * statement remembers the run's state at its start, and does not affect later claims.
 */

interface Leaving<A> {
  /** State of the run when its release began. */
  readonly as: A;
  /** True if a statement was sent and its outcome is not known. */
  readonly isUnderWay: boolean;
}

/** The runs to release, including those whose release failed. */
export class SqlLeaving<A extends object> {
  /** At most as many as this process drives. */
  readonly #runs = new Map<string, Leaving<A>>();

  get all(): ReadonlyArray<string> {
    return [...this.#runs.keys()];
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Marks a statement as sent. Returns false if one is in flight. */
  tryBegin(runId: string, as: A): boolean {
    if (this.#runs.get(runId)?.isUnderWay === true) return false;
    this.#runs.set(runId, { as, isUnderWay: true });
    return true;
  }

  done(runId: string, as: A): void {
    if (this.#runs.get(runId)?.as === as) this.#runs.delete(runId);
  }

  /** Marks the statement as failed, as far as this process knows. If the run is still driven here, it is released later. */
  fail(runId: string, as: A, isDriven: boolean): void {
    if (this.#runs.get(runId)?.as !== as) return;
    if (isDriven) this.#runs.set(runId, { as, isUnderWay: false });
    else this.#runs.delete(runId);
  }

  /** Forgets a run that is no longer driven, for another reason. */
  forget(runId: string): void {
    if (this.#runs.get(runId)?.isUnderWay === false) this.#runs.delete(runId);
  }

  clear(): void {
    this.#runs.clear();
  }
}
