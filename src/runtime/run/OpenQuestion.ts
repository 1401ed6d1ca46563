/**
 * Knows whether a question of a run is open, and what has overtaken it.
 *
 * Q1 A question is overtaken only by facts that grow after it was opened.
 * Q2 A question that was overtaken stays so: its answer is refused, also one of the same step.
 * Q3 Revisions only grow.
 * Q4 A tool is asked once about each of its calls.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";

/** `open`: `grew` is done once a fact has grown. */
type State = { readonly kind: "closed" } | { readonly kind: "open"; readonly grew: Deferred.Deferred<void> };

const closed: State = { kind: "closed" };

/** Shared by all runs whose tools were not asked. */
const none: ReadonlyArray<string> = [];

/** The question that one run has open. */
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

  /** Waits until the open question is overtaken; for ever where none is open. */
  get overtaken(): Effect.Effect<void> {
    return this.#state.kind === "open" ? Deferred.await(this.#state.grew) : Effect.never;
  }

  /** The revision of the next question (Q3). */
  next(): number {
    this.#revisions += 1;
    return this.#revisions;
  }

  /** A question opens: from here on a late settle overtakes it (Q1). */
  open(): void {
    this.#state = { kind: "open", grew: Deferred.makeUnsafe<void>() };
  }

  /** The question is answered or given up. Returns whether it was overtaken before (Q2). */
  close(): boolean {
    const { isOvertaken } = this;
    this.#state = closed;
    return isOvertaken;
  }

  /** A fact has grown. Returns whether a question was open, which is overtaken now. */
  grew(): boolean {
    if (this.#state.kind === "closed") return false;
    Deferred.doneUnsafe(this.#state.grew, Effect.void);
    return true;
  }

  /** Whether the tool of this call is to be asked; from now on it was (Q4). */
  asksTool(call: string): boolean {
    if (this.#askedOf.includes(call)) return false;
    this.#askedOf = [...this.#askedOf, call];
    return true;
  }

  /** The run goes on from its record, which holds so many questions. */
  restored(revision: number): void {
    this.#revisions = revision;
  }
}
