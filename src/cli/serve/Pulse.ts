/**
 * Detects a worker that hangs: the process is alive, but its event loop has stopped.
 *
 * The supervisor sends a ping in one of its own turns and counts its turns until the answer, instead of measuring time. While the machine
 * sleeps, or a container or terminal is suspended, the supervisor has no turns either, so it does not suspect its workers.
 */

/** Interval between two turns of the supervisor, in milliseconds. */
export const turnMs = 2_000;

/**
 * Number of unanswered turns after which a worker counts as hanging. These 20 s are about three hundred times the longest measured turn (64
 * ms, for a body of 32 MiB), and longer than a commit waits for a disk to flush. They also exceed the lease, so other processes on the same
 * store already consider the worker dead.
 */
export const turnsMax = 10;

/** The action of the supervisor in a turn: send a ping, wait for its answer, or treat the worker as hanging. */
export type Turn = "ask" | "wait" | "hangs";

/** Tracks the answers of one worker. */
export class Pulse {
  /** Turns since the worker was asked; undefined while no answer is pending. */
  #silent: number | undefined;

  /** Advances by one turn of the supervisor. */
  advance(): Turn {
    if (this.#silent === undefined) {
      this.#silent = 0;
      return "ask";
    }
    this.#silent += 1;
    return this.#silent < turnsMax ? "wait" : "hangs";
  }

  onAnswer(): void {
    this.#silent = undefined;
  }

  /** True if the worker hangs as far as is known now. */
  get isHanging(): boolean {
    return this.#silent !== undefined && this.#silent >= turnsMax;
  }
}
