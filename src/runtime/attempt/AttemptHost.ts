/**
 * The interface between an attempt and its run, and the setup of an attempt.
 */
import type * as Deferred from "effect/Deferred";
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import type { Path } from "../../paths/Path.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import type { AttemptContext, Withdrawn } from "../contract/RunOptions.ts";
import type { SeamSlot } from "../contract/Stages.ts";
import type { Taps } from "../contract/Taps.ts";
import type { SettledCall } from "../contract/ToolCall.ts";
import type { NamedCall, ToolLedger } from "../tools/ToolLedger.ts";
import type { AttemptEnd, Classifying } from "./AttemptEnd.ts";
import type { Handoff } from "./Handoff.ts";
import type { Carried, Reveal } from "./Reveal.ts";

/** Evidence that an attempt records. */
type Noted = "late_part_refused" | "terminal_candidate" | "watchdog" | "suspended";

/** The seam of a run, as its attempts use it. */
export type AttemptSeams<P> = Pick<SeamSlot<P, never>, "recordSent" | "check">;

/** Services that a run provides to its attempts of type `A`. */
export interface AttemptHost<P, A> {
  readonly runId: string;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  /** Joins the texts of the run's attempts; undefined if the caller did not enable continuations. */
  readonly seams: AttemptSeams<P> | undefined;
  readonly taps: Taps<P> | undefined;
  readonly now: () => number;
  /**
   * Commits the facts of an attempt, with the calls that become complete, before a part of it is handed over. Resolves to true if the parts
   * may be handed over. Returns `true` directly if the store completes the write synchronously.
   */
  readonly recordShown: (attempt: A, calls: ReadonlyArray<NamedCall>) => true | Deferred.Deferred<boolean>;
  /** Path of the next request. */
  readonly path: string;
  /** Called when a transport reports the path of an attempt's request. Returns the path that applies. */
  readonly attach: (path: string, reported: Path) => string;
  /**
   * Called with the attempt's path when the transport reports a response head that is not a refusal, or at the latest with the first part.
   */
  readonly onHead: (path: string) => void;
  /** Called when the first part of an attempt has arrived. */
  readonly onResponse: () => void;
  /** Called once, in the step that decided the end. Must not block. */
  readonly onAttemptEnd: (attempt: A, end: AttemptEnd) => void;
  /** Called once, when an attempt's text is proven to continue the shown text. Must not block. */
  readonly onContinued: (attempt: A) => void;
  readonly note: (attempt: number, event: Noted, detail?: string) => void;
}

/** Provides the settings that convert an error of the source to a failure. They are read when the error occurs. */
export interface ErrorReader<E> {
  readonly classifying: () => Classifying<E>;
}

/** Values that differ between the attempts of a run. */
export interface AttemptSetup<P> {
  /** Number of the attempt within the run, from 1. */
  readonly number: number;
  readonly mode: AttemptMode;
  readonly request: AttemptContext["request"];
  readonly calls: ReadonlyArray<SettledCall>;
  readonly cursor: string | undefined;
  /** Plan for the continuation of shown text; undefined if the attempt continues none. */
  readonly seam: SeamPlan | undefined;
  readonly discarded: ReadonlyArray<Withdrawn>;
  /** Name of the route; undefined for the run's own first route. */
  readonly route: string | undefined;
  readonly facts: FactsFold;
  readonly reveal: Reveal<P>;
  /** Parts of the same response that an earlier attempt held. `reveal` contains them already. */
  readonly carried: Carried<P> | undefined;
}
