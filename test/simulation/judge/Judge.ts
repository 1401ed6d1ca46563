/** Judges a trace by every invariant, from what the observers logged and never from the processor's own claims. */
import type { Trace } from "../Journal.ts";
import * as Attempts from "./Attempts.ts";
import * as End from "./End.ts";
import * as Events from "./Events.ts";
import type { Violation } from "./Invariants.ts";
import * as Records from "./Record.ts";
import * as Routes from "./Routes.ts";
import * as Seams from "./Seams.ts";
import * as World from "./World.ts";

const judges: ReadonlyArray<(trace: Trace) => ReadonlyArray<Violation>> = [
  World.idsOnce,
  Events.grammar,
  Events.nothingTwice,
  Events.plainParts,
  Events.sameRequest,
  Attempts.effectsOnce,
  Attempts.oneAtATime,
  Attempts.noFalseSuccess,
  Attempts.nothingStartsAfterTheStop,
  Records.everyRunEnds,
  Records.recordThenAct,
  Records.decidedAgain,
  Records.bounded,
  End.originalError,
  End.whoseCancel,
  End.withinBudget,
  End.decisionsLead,
  End.goesOnceAfterItsWait,
  Routes.whatCrosses,
  Routes.whoseFailure,
  Seams.onlyBySeams,
  World.everyEntryDecodes,
  World.recordAgrees,
  World.noWriteHolds,
  World.frozenTimeIsNoSilence,
  World.endsInTheCalm,
  World.shownMeansHandedOver,
  World.runsAndDidNotRun,
];

/** Every violation in a trace. */
export const judge = (trace: Trace): ReadonlyArray<Violation> => judges.flatMap((it) => it(trace));
