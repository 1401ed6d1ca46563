/**
 * Says what an attempt needs of its run, and what it is made with.
 */
import type * as Deferred from "effect/Deferred";
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import type { Path } from "../../paths/Path.ts";
import type { SeamPlan, TextSeam } from "../../seam/TextSeam.ts";
import type { AttemptContext, Withdrawn } from "../contract/RunOptions.ts";
import type { Taps } from "../contract/Taps.ts";
import type { SettledCall } from "../contract/ToolCall.ts";
import type { NamedCall, ToolLedger } from "../tools/ToolLedger.ts";
import type { AttemptEnd, Classifying } from "./AttemptEnd.ts";
import type { Handoff } from "./Handoff.ts";
import type { Carried, Reveal } from "./Reveal.ts";

/** The evidence that an attempt gives itself. */
type Noted = "late_part_refused" | "terminal_candidate" | "watchdog" | "suspended";

/** What an attempt `A` needs of its run. */
export interface AttemptHost<P, A> {
  readonly runId: string;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  /** What joins the run's texts, where its caller has given it. */
  readonly seams: Pick<TextSeam<P>, "left" | "joins"> | undefined;
  readonly taps: Taps<P> | undefined;
  readonly now: () => number;
  /**
   * Commits the facts of an attempt before something of it is handed over, with the calls that become whole by it. Returns
   * whether they may be handed over: at once, where the store took the write in this very step.
   */
  readonly recordShown: (attempt: A, calls: ReadonlyArray<NamedCall>) => true | Deferred.Deferred<boolean>;
  /** The path of the request that goes next. */
  readonly path: string;
  /** Called when a transport reports the path of an attempt's request. Gives the path that counts. */
  readonly attach: (path: string, reported: Path) => string;
  /** Called with its path when the head of an attempt's response has come, where its transport says so. */
  readonly answered: (path: string) => void;
  /** Called when the first part of an attempt has arrived. */
  readonly responded: () => void;
  /** Called once, in the step that decided the end. Must not block. */
  readonly ended: (attempt: A, end: AttemptEnd) => void;
  /** Called once, when the text of an attempt is proven to go on with what was shown. Must not block. */
  readonly continued: (attempt: A) => void;
  readonly note: (attempt: number, event: Noted, detail?: string) => void;
}

/** Tells how an error of the source becomes a failure, at the time of the error. */
export interface ErrorReader<E> {
  readonly classifying: () => Classifying<E>;
}

/** What makes one attempt of a run different from the next. */
export interface AttemptSetup<P> {
  /** Counts the attempts of the run, from 1. */
  readonly number: number;
  readonly mode: AttemptMode;
  readonly request: AttemptContext["request"];
  readonly calls: ReadonlyArray<SettledCall>;
  readonly cursor: string | undefined;
  /** How it goes on with text that was shown. */
  readonly seam: SeamPlan | undefined;
  readonly discarded: ReadonlyArray<Withdrawn>;
  /** The route that it goes by; undefined for the run's own first one. */
  readonly route: string | undefined;
  readonly facts: FactsFold;
  readonly reveal: Reveal<P>;
  /** Parts of the same response that were held back before; they are in `reveal` already. */
  readonly carried: Carried<P> | undefined;
}
