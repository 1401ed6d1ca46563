/**
 * Says when a worker hangs: its process lives, and its event loop turns no more.
 *
 * A supervisor asks once a turn of its own, and counts its turns until the answer: not the time. While the machine sleeps, a container
 * is paused or a terminal has stopped all of them, the supervisor has no turn either, and a worker that had none with it is not to blame.
 */

/** From one turn of the supervisor to the next, in milliseconds. */
export const turnMs = 1_000;

/**
 * A worker that has let so many turns go by hangs. At 20 s it is some three hundred times the longest turn that was measured (64 ms, a
 * body of 32 MiB), longer than a disk that is written back keeps a commit, and longer than the lease of its runs: another process
 * over the same store takes it for dead by then.
 */
export const turnsMax = 20;

/** What is to be done in a turn. */
export type Turn = "ask" | "wait" | "hangs";

/** Whether one worker answers. */
export class Pulse {
  /** Turns since it was asked; undefined while nothing is asked. */
  #silent: number | undefined;

  /** The supervisor has a turn. */
  turn(): Turn {
    if (this.#silent === undefined) {
      this.#silent = 0;
      return "ask";
    }
    this.#silent += 1;
    return this.#silent < turnsMax ? "wait" : "hangs";
  }

  /** The worker has answered. */
  answered(): void {
    this.#silent = undefined;
  }

  /** Whether it hangs as far as is known now. */
  get hangs(): boolean {
    return this.#silent !== undefined && this.#silent >= turnsMax;
  }
}
