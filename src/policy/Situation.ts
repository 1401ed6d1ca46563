/**
 * Prepares the input of a decision for the rules of a policy: its ledger is read once, its flags are filled in.
 */
import type { AttemptFacts, Shown } from "../domain/AttemptFacts.ts";
import * as Failure from "../domain/Failure.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import * as InputReading from "./InputReading.ts";

/** What the rows of the ledger say together. A row that is not read_only "changes". */
export interface LedgerFacts {
  /** Runtime calls that change, by how far the furthest got. */
  inputStarted: boolean;
  inputComplete: boolean;
  handedOver: boolean;
  dispatched: boolean;
  outcomeUnknown: boolean;
  settledChanging: boolean;
  /** A runtime call of any effect settled. */
  settled: boolean;
  /** A provider-executed call that changes was seen. */
  providerChanging: boolean;
  /** There are calls. */
  any: boolean;
}

/** A decision's input, with the conditions read that more than one rule rests on. */
export interface Situation extends DecisionInput {
  readonly ledger: LedgerFacts;
  /** The failure's flags, filled in from the table of kinds. */
  readonly resolved: Failure.Flags;
  /** Every runtime tool was made by ToolGuard, as the snapshot proves. */
  readonly guarded: boolean;
  /** Reasoning that a caller cannot discard counts as text. */
  readonly shown: Shown;
  /** The provider did nothing, and nothing that it sent says otherwise. */
  readonly notProcessed: boolean;
  /** The failure is `rejected.auth`, and other credentials can be tried once. */
  readonly credentials: boolean;
  /** The failure is about what the model wrote: the provider's marker does not make it complete. */
  readonly malformed: boolean;
}

/** Reads an input once; a value that is not understood is taken at its worst. */
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
