/**
 * Describes the growth of each fact of an attempt in one table: its order (law L1), its join, and its shift in an attempt that continues
 * the response of earlier attempts.
 *
 * A fact of `AttemptFacts` does not compile without a row here, a worst value in policy/InputReading.ts and an export in
 * recorder/export/ExportValues.ts. Every operation on all facts reads this table. For example, a record joins facts, a decision compares
 * them, and a resumed response appends the facts of its attempts.
 */
import {
  type AttemptFacts,
  type Counters,
  isAtMost as chainAtMost,
  Delivery,
  Progress,
  pickHigher,
  Shown,
  ToolPhase,
  type ToolRow,
} from "../domain/AttemptFacts.ts";
import { type Counts, type Executor, type SideEffects, ToolEffect } from "../domain/SideEffects.ts";
import { foldKey, isFoldAbove, isFolded, Ledger } from "./ToolRows.ts";

/** Growth rules of one fact. */
export interface Growth<A> {
  /** Returns true if a value can grow into another one. */
  readonly isAtMost: (a: A, b: A) => boolean;
  /** Returns the lowest value into which both can grow. */
  readonly join: (a: A, b: A) => A;
  /** Returns the last moment in the value; 0 if it has none. Moments are counted by the counter that orders text, calls and settles. */
  readonly moment: (value: A) => number;
  /** Returns the value for an attempt that continues to read a response after other attempts. */
  readonly shiftBy: (value: A, before: EarlierAttempts) => A;
}

/** Summary of the earlier attempts that read the same response. */
interface EarlierAttempts {
  readonly attempts: number;
  /** The last moment in the facts of these attempts. */
  readonly moment: number;
}

const anyTime = { moment: () => 0, shiftBy: <A>(value: A): A => value };

/** Growth of a chain of literals, which is declared in growing order. */
const chain = <A extends string>(literals: { readonly literals: ReadonlyArray<A> }): Growth<A> => ({
  ...anyTime,
  isAtMost: (a, b) => chainAtMost(literals, a, b),
  join: (a, b) => pickHigher(literals, a, b),
});

/** Growth of a moment. Everything in a later attempt happened after everything in the attempts before it. */
const moment: Growth<number> = {
  isAtMost: (a, b) => a <= b,
  join: Math.max,
  moment: (value) => value,
  shiftBy: (value, before) => (value === 0 ? 0 : value + before.moment),
};

const flag: Growth<boolean> = { ...anyTime, isAtMost: (a, b) => !a || b, join: (a, b) => a || b };

/**
 * Growth of a ledger. A later ledger contains every row of an earlier one, either as the same call in the same or a later phase, or within
 * the row into which the calls of its executor are folded.
 */
const ledger: Growth<ReadonlyArray<ToolRow>> = {
  ...anyTime,
  isAtMost: (f, g) => {
    if (f.length === 0) return true;
    const byKey = new Map(g.map((row) => [keyOf(row.executor, row.call), row]));
    return f.every((row) => {
      const own = byKey.get(keyOf(row.executor, row.call)) ?? byKey.get(keyOf(row.executor, foldKey(row.executor)));
      return own !== undefined && isRowAtMost(row, own);
    });
  },
  join: (f, g) => {
    const both = new Ledger();
    for (const row of f) both.raise(row);
    for (const row of g) both.raise(row);
    return both.rows;
  },
  // The calls of a later attempt are different calls although their keys start over, so the attempt becomes part of the key.
  shiftBy: (rows, { attempts }) => rows.map((row) => ({ ...row, call: `${attempts + 1}/${row.call}` })),
};

const keyOf = (executor: Executor, call: string): string => `${executor} ${call}`;

const isRowAtMost = (a: ToolRow, b: ToolRow): boolean =>
  isFolded(b)
    ? isFoldAbove(b, a)
    : chainAtMost(ToolEffect, a.effect, b.effect) && chainAtMost(ToolPhase, a.phase, b.phase);

/** Growth of `side_effects`: a snapshot that proves less is higher. A missing snapshot proves nothing, so it is the highest. */
const snapshot: Growth<SideEffects | null> = {
  ...anyTime,
  isAtMost: (f, g) => {
    if (g === null) return true;
    if (f === null) return false;
    return (
      (f.guarded || !g.guarded) &&
      (f.complete || !g.complete) &&
      areCountsAtMost(f.runtime, g.runtime) &&
      areCountsAtMost(f.provider, g.provider)
    );
  },
  join: (f, g) => {
    if (f === null || g === null) return null;
    return {
      guarded: f.guarded && g.guarded,
      complete: f.complete && g.complete,
      reason: [f.reason, g.reason].includes("provider_tools")
        ? "provider_tools"
        : f.reason === "all_classified"
          ? g.reason
          : f.reason,
      runtime: joinCounts(f.runtime, g.runtime),
      provider: joinCounts(f.provider, g.provider),
    };
  },
};

const areCountsAtMost = (a: Counts, b: Counts): boolean =>
  a.read_only <= b.read_only && a.mutating <= b.mutating && a.unknown <= b.unknown;

const joinCounts = (a: Counts, b: Counts): Counts => ({
  read_only: Math.max(a.read_only, b.read_only),
  mutating: Math.max(a.mutating, b.mutating),
  unknown: Math.max(a.unknown, b.unknown),
});

/** Growth of numbers for reports. They have no order, because no decision reads them. */
const report: Growth<Counters> = {
  ...anyTime,
  isAtMost: () => true,
  join: (a, b) => {
    const joined = { ...a };
    // `Object.keys` loses the literal keys of the counters.
    for (const name of Object.keys(b) as ReadonlyArray<keyof Counters>)
      joined[name] = Math.max(joined[name] ?? 0, b[name] ?? 0);
    return joined;
  },
};

/** The table, in the order of `AttemptFacts`. */
export const growth: { readonly [K in keyof AttemptFacts]: Growth<AttemptFacts[K]> } = {
  delivery: chain(Delivery),
  progress: chain(Progress),
  shown: chain(Shown),
  text_through: moment,
  call_through: moment,
  settled_through: moment,
  tools: ledger,
  terminal_seen: flag,
  side_effects: snapshot,
  counters: report,
};

// `Object.keys` loses the literal keys of the table.
const names = Object.keys(growth) as ReadonlyArray<keyof AttemptFacts>;

const buildFacts = (fact: <K extends keyof AttemptFacts>(name: K) => AttemptFacts[K]): AttemptFacts => {
  const facts: Partial<Record<keyof AttemptFacts, unknown>> = {};
  for (const name of names) facts[name] = fact(name);
  // The table has exactly the names of the facts, which the compiler cannot infer from the loop.
  return facts as unknown as AttemptFacts;
};

/** Returns true if facts `f` can grow into facts `g`: every fact of `f` is at or below the same fact of `g`. */
export const canGrowInto = (f: AttemptFacts, g: AttemptFacts): boolean => {
  const isAtMost = <K extends keyof AttemptFacts>(name: K): boolean => growth[name].isAtMost(f[name], g[name]);
  return names.every(isAtMost);
};

/** Returns the lowest facts into which both can grow. Rows beyond the ledger's limit are folded. */
export const join = (f: AttemptFacts, g: AttemptFacts): AttemptFacts =>
  // Joining a value with itself gives the same value.
  buildFacts((name) => (f[name] === g[name] ? f[name] : growth[name].join(f[name], g[name])));

/** Returns the last moment in the facts. The next event gets a later moment. */
export const lastMoment = (facts: AttemptFacts): number => {
  const of = <K extends keyof AttemptFacts>(name: K): number => growth[name].moment(facts[name]);
  return Math.max(...names.map(of));
};

/**
 * Returns the facts of one response, combined from its attempts.
 *
 * @param attempts the facts of its attempts, in the order in which they read the response; at least one
 */
export const joinAttempts = ([first, ...resumed]: readonly [AttemptFacts, ...Array<AttemptFacts>]): AttemptFacts =>
  resumed.reduce((before, facts, index) => {
    const earlier = { attempts: index + 1, moment: lastMoment(before) };
    return join(
      before,
      buildFacts((name) => growth[name].shiftBy(facts[name], earlier)),
    );
  }, first);
