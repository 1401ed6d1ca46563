/**
 * Describes a failed attempt on its way through recovery: what it is decided on, and what was decided.
 */
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Decision } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import type { Attempt } from "../attempt/AttemptRunner.ts";

/** A failed attempt with what its decision is taken on. */
export interface Broken<P> {
  readonly attempt: Attempt<P>;
  readonly failure: Failure;
  /** The original error, unchanged (law L12). */
  readonly cause: unknown;
  /** The cursor of the response was refused: it is decided as a whole, and the cursor is not used again. */
  readonly cursorRefused: boolean;
  /** The facts that the decision is taken on, read anew each time: the attempt's own, or the whole response's. */
  readonly facts: () => AttemptFacts;
}

/** A decision, its incident, and whether that is on record. */
export interface Verdict {
  readonly decision: Decision;
  readonly incident: RunIncident;
  readonly recorded: boolean;
}
