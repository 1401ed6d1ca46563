/**
 * Tracks the open question of a run and whether it was overtaken.
 *
 * Q1 A question is overtaken only by facts that grow after it was opened.
 * Q2 An overtaken question stays overtaken. Its answer is refused, even in the same step.
 * Q3 Revisions only grow.
 * Q4 A tool is asked once about each of its calls.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";

/** In `open`, `grew` completes when a fact has grown. */
type State = { readonly kind: "closed" } | { readonly kind: "open"; readonly grew: Deferred.Deferred<void> };

const closed: State = { kind: "closed" };

/** Shared by all runs that have not asked a tool. */
const none: ReadonlyArray<string> = [];

/** The open question of one run. */
export class OpenQuestion {
  #state: State = closed;
  #revisions = 0;
  #askedOf: ReadonlyArray<string> = none;

  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  get isOvertaken(): boolean {
    return this.#state.kind === "open" && Deferred.isDoneUnsafe(this.#state.grew);
  }

  /** Waits until the open question is overtaken. Never completes if none is open. */
  get awaitOvertaken(): Effect.Effect<void> {
    return this.#state.kind === "open" ? Deferred.await(this.#state.grew) : Effect.never;
  }

  /** Returns the revision of the next question (Q3). */
  next(): number {
    this.#revisions += 1;
    return this.#revisions;
  }

  /** Opens a question. From now on, a call that settles late overtakes it (Q1). */
  open(): void {
    this.#state = { kind: "open", grew: Deferred.makeUnsafe<void>() };
  }

  /** Closes the question. Returns true if it was overtaken before (Q2). */
  close(): boolean {
    const { isOvertaken } = this;
    this.#state = closed;
    return isOvertaken;
  }

  /** Marks the open question as overtaken, because a fact has grown. Returns true if a question was open. */
  overtake(): boolean {
    if (this.#state.kind === "closed") return false;
    Deferred.doneUnsafe(this.#state.grew, Effect.void);
    return true;
  }

  /** Records that the tool of this call is asked. Returns false if it was asked before (Q4). */
  markToolAsked(call: string): boolean {
    if (this.#askedOf.includes(call)) return false;
    this.#askedOf = [...this.#askedOf, call];
    return true;
  }

  /** Restores the revision of the last question on record. */
  restore(revision: number): void {
    this.#revisions = revision;
  }
}
