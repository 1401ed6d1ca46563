/**
 * Finds calls in a ledger that started and did not report their outcome. Accepts ledgers from untyped callers.
 */
import type { AttemptFacts, ToolRow } from "../domain/AttemptFacts.ts";
import * as Json from "../domain/Json.ts";

/** Returns the readable rows of a ledger. */
export const readableRows = ({ tools }: AttemptFacts): ReadonlyArray<ToolRow> =>
  Array.isArray(tools) ? tools.filter((row) => Json.record(row) !== undefined) : [];

const isCut = ({ phase }: ToolRow): boolean => phase === "dispatched" || phase === "outcome_unknown";

/** Returns true if a call started and did not report its outcome. */
export const hasCutCall = (facts: AttemptFacts): boolean => readableRows(facts).some(isCut);

/** Returns true if a call that may have changed something started and did not report its outcome. */
export const hasUnknownOutcome = (facts: AttemptFacts): boolean =>
  readableRows(facts).some((row) => isCut(row) && row.effect !== "read_only");
