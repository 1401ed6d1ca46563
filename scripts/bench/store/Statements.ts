/**
 * Classifies statements by the tables that they name.
 */
import type { Statement } from "./Server.ts";

/** The number of statements of each kind. */
export interface Kinds {
  readonly all: number;
  /** Statements that begin a transaction of several statements. */
  readonly transactions: number;
  /** Statements about facts that gateways share: waits, cancels, failed requests, groups, and the number of live gateways. */
  readonly facts: number;
  /** Statements that notify other processes. */
  readonly notifies: number;
}

const isBegin = /^(?:begin|start transaction)\b/i;
const isEnd = /^(?:commit|rollback)\b(?! to\b)/i;
const isFact = /\b\w*(?:facts|groups)\b|\bcount\(\*\) AS n FROM "?\w*leases\b/i;
const isNotify = /\bpg_notify\b|^notify\b/i;

/**
 * Counts statements by kind. The server counts a prepared `COMMIT` only once per connection, so one end is counted for each beginning.
 *
 * @param per the divisor: a number of streams, or of seconds
 */
export const kindsOf = (statements: ReadonlyArray<Statement>, per: number): Kinds => {
  const count = (is: (sql: string) => boolean): number =>
    statements.reduce((sum, { calls, sql }) => sum + (is(sql) ? calls : 0), 0) / per;
  const transactions = count((sql) => isBegin.test(sql));
  return {
    all: count((sql) => !isEnd.test(sql)) + transactions,
    transactions,
    facts: count((sql) => isFact.test(sql)),
    notifies: count((sql) => isNotify.test(sql)),
  };
};

/** The most frequent statements, each with its frequency. */
export const commonest = (statements: ReadonlyArray<Statement>, per: number, most: number): ReadonlyArray<string> =>
  statements
    .toSorted((a, b) => b.calls - a.calls)
    .slice(0, most)
    .map(({ calls, sql }) => `${(calls / per).toFixed(3)} ${sql.slice(0, 160)}`);
