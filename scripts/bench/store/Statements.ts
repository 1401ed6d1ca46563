/**
 * Tells what statements are for, by the tables that they name.
 */
import type { Statement } from "./Server.ts";

/** How many statements of each kind there were. */
export interface Kinds {
  readonly all: number;
  /** Those that begin a transaction of several statements. */
  readonly transactions: number;
  /** Of what gateways know together: waits, cancels, failed requests, groups, and how many gateways live. */
  readonly facts: number;
  readonly deliveries: number;
  /** Those that tell other processes something. */
  readonly notifies: number;
}

const isBegin = /^(?:begin|start transaction)\b/i;
const isEnd = /^(?:commit|rollback)\b(?! to\b)/i;
const isFact = /\b\w*(?:facts|groups)\b|\bcount\(\*\) AS n FROM "?\w*leases\b/i;
const isDelivery = /\b\w*deliver(?:ies|yparts)\b/i;
const isNotify = /\bpg_notify\b|^notify\b/i;

/**
 * Counts them. The server counts a prepared `COMMIT` once for each connection only, so that one end is counted for each beginning.
 *
 * @param per what the counts are of: so many streams, or seconds
 */
export const kindsOf = (statements: ReadonlyArray<Statement>, per: number): Kinds => {
  const count = (is: (sql: string) => boolean): number =>
    statements.reduce((sum, { calls, sql }) => sum + (is(sql) ? calls : 0), 0) / per;
  const transactions = count((sql) => isBegin.test(sql));
  return {
    all: count((sql) => !isEnd.test(sql)) + transactions,
    transactions,
    facts: count((sql) => isFact.test(sql)),
    deliveries: count((sql) => isDelivery.test(sql)),
    notifies: count((sql) => isNotify.test(sql)),
  };
};

/** The statements that came oftenest, each with how often. */
export const commonest = (statements: ReadonlyArray<Statement>, per: number, most: number): ReadonlyArray<string> =>
  statements
    .toSorted((a, b) => b.calls - a.calls)
    .slice(0, most)
    .map(({ calls, sql }) => `${(calls / per).toFixed(3)} ${sql.slice(0, 160)}`);
