/**
 * Prepares the input of a decision for the rules of a policy: reads its ledger once and fills in its flags.
 */
import type { AttemptFacts, Shown } from "../domain/AttemptFacts.ts";
import * as Failure from "../domain/Failure.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import * as InputReading from "./InputReading.ts";

/** Summary of the ledger's rows. A "changing" call is a call that is not `read_only`. */
export interface LedgerFacts {
  /** This and the next five fields: true if a changing runtime call is in that phase. */
  inputStarted: boolean;
  inputComplete: boolean;
  handedOver: boolean;
  dispatched: boolean;
  outcomeUnknown: boolean;
  settledChanging: boolean;
  /** True if a runtime call of any effect settled. */
  settled: boolean;
  /** True if a changing call that the provider executes was seen. */
  providerChanging: boolean;
  any: boolean;
}

/** Input of a decision, with the conditions that several rules share. */
export interface Situation extends DecisionInput {
  readonly ledger: LedgerFacts;
  /** Flags of the failure, filled in from the table of kinds. */
  readonly resolved: Failure.Flags;
  /** True if ToolGuard made every runtime tool, as the snapshot proves. */
  readonly guarded: boolean;
  /** Highest output that was shown. Reasoning counts as text if the caller cannot discard it. */
  readonly shown: Shown;
  /** True if the provider says that it did nothing, and its output does not contradict that. */
  readonly notProcessed: boolean;
  /** True if the failure is `rejected.auth` and other credentials can be tried once. */
  readonly credentials: boolean;
  /** True if the failure is about the model's output. The provider's marker then does not make the response complete. */
  readonly malformed: boolean;
}

/** Prepares an input. An invalid or unknown value counts as the worst one. */
export const make = (given: DecisionInput): Situation => {
  const input = InputReading.read(given);
  const { facts, failure, run } = input;
  const resolved = Failure.flags(failure);
  return {
    facts,
    failure,
    run,
    budget: input.budget,
    jitter: input.jitter,
    ledger: readLedger(facts),
    resolved,
    guarded: facts.side_effects?.guarded === true,
    shown: facts.shown === "reasoning" && !run.discardable ? "text" : facts.shown,
    notProcessed: resolved.not_processed && (facts.progress === "none" || facts.progress === "started"),
    credentials:
      failure.kind === "rejected" &&
      failure.reason === "auth" &&
      run.can_refresh_credentials &&
      run.credential_refreshes === 0,
    malformed: Failure.isMalformed(failure),
  };
};

const readLedger = (facts: AttemptFacts): LedgerFacts => {
  const ledger = {
    inputStarted: false,
    inputComplete: false,
    handedOver: false,
    dispatched: false,
    outcomeUnknown: false,
    settledChanging: false,
    settled: false,
    providerChanging: false,
    any: facts.tools.length > 0,
  };
  for (const row of facts.tools) {
    const changing = row.effect !== "read_only";
    if (row.executor === "provider") ledger.providerChanging ||= changing;
    else if (row.phase === "settled") {
      ledger.settled = true;
      ledger.settledChanging ||= changing;
    } else if (changing) markOpen(ledger, row.phase);
  }
  return ledger;
};

const markOpen = (
  ledger: LedgerFacts,
  phase: "input_started" | "input_complete" | "handed_over" | "dispatched" | "outcome_unknown",
): void => {
  switch (phase) {
    case "input_started":
      ledger.inputStarted = true;
      return;
    case "input_complete":
      ledger.inputComplete = true;
      return;
    case "handed_over":
      ledger.handedOver = true;
      return;
    case "dispatched":
      ledger.dispatched = true;
      return;
    case "outcome_unknown":
      ledger.outcomeUnknown = true;
  }
};
