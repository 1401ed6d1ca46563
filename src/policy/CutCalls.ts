/**
 * Reads from a ledger whether a call started and did not report its outcome. The ledger may come from a caller without types.
 */
import type { AttemptFacts, ToolRow } from "../domain/AttemptFacts.ts";
import * as Json from "../domain/Json.ts";

/** The rows of a ledger that can be read. */
export const rowsOf = ({ tools }: AttemptFacts): ReadonlyArray<ToolRow> =>
  Array.isArray(tools) ? tools.filter((row) => Json.record(row) !== undefined) : [];

const isCut = ({ phase }: ToolRow): boolean => phase === "dispatched" || phase === "outcome_unknown";

/** Recognises a ledger with a call that started and did not report its outcome. */
export const hasCutCall = (facts: AttemptFacts): boolean => rowsOf(facts).some(isCut);

/** Recognises a ledger with such a call that may have changed something. */
export const hasUnknownOutcome = (facts: AttemptFacts): boolean =>
  rowsOf(facts).some((row) => isCut(row) && row.effect !== "read_only");
