/**
 * Orders facts by growth (law L1) and joins them. Counters are for reports and stand outside the order.
 */
import {
  type AttemptFacts,
  type Counters,
  Delivery,
  higher,
  Progress,
  Shown,
  atMost as stands,
  ToolPhase,
  type ToolRow,
} from "../domain/AttemptFacts.ts";
import { type Counts, type Executor, type SideEffects, ToolEffect } from "../domain/SideEffects.ts";
import { foldCovers, foldedCall, isFolded, Ledger } from "./ToolRows.ts";

/**
 * Whether facts `f` can grow into facts `g`.
 *
 * Every chain, flag and counter of `f` is at or below that of `g`, and every row of `f` is found in `g`: as the same call
 * at the same or a later phase, or in the fold of its executor. Of two snapshots the one that proves less is higher.
 */
export const atMost = (f: AttemptFacts, g: AttemptFacts): boolean =>
  stands(Delivery, f.delivery, g.delivery) &&
  stands(Progress, f.progress, g.progress) &&
  stands(Shown, f.shown, g.shown) &&
  f.text_through <= g.text_through &&
  f.call_through <= g.call_through &&
  f.settled_through <= g.settled_through &&
  (!f.terminal_seen || g.terminal_seen) &&
  snapshotAtMost(f.side_effects, g.side_effects) &&
  rowsAtMost(f.tools, g.tools);

/** The lowest facts that both grow into. Rows past the ledger's limit are folded. */
export const join = (f: AttemptFacts, g: AttemptFacts): AttemptFacts => ({
  delivery: higher(Delivery, f.delivery, g.delivery),
  progress: higher(Progress, f.progress, g.progress),
  shown: higher(Shown, f.shown, g.shown),
  text_through: Math.max(f.text_through, g.text_through),
  call_through: Math.max(f.call_through, g.call_through),
  settled_through: Math.max(f.settled_through, g.settled_through),
  tools: joinRows(f.tools, g.tools),
  terminal_seen: f.terminal_seen || g.terminal_seen,
  side_effects: joinSnapshots(f.side_effects, g.side_effects),
  counters: joinCounters(f.counters, g.counters),
});

const rowsAtMost = (f: ReadonlyArray<ToolRow>, g: ReadonlyArray<ToolRow>): boolean => {
  if (f.length === 0) return true;
  const byKey = new Map(g.map((row) => [keyOf(row.executor, row.call), row]));
  return f.every((row) => {
    const own = byKey.get(keyOf(row.executor, row.call)) ?? byKey.get(keyOf(row.executor, foldedCall(row.executor)));
    return own !== undefined && rowAtMost(row, own);
  });
};

const keyOf = (executor: Executor, call: string): string => `${executor} ${call}`;

const rowAtMost = (a: ToolRow, b: ToolRow): boolean =>
  isFolded(b) ? foldCovers(b, a) : stands(ToolEffect, a.effect, b.effect) && stands(ToolPhase, a.phase, b.phase);

const snapshotAtMost = (f: SideEffects | null, g: SideEffects | null): boolean => {
  if (g === null) return true;
  if (f === null) return false;
  return (
    (f.guarded || !g.guarded) &&
    (f.complete || !g.complete) &&
    countsAtMost(f.runtime, g.runtime) &&
    countsAtMost(f.provider, g.provider)
  );
};

const countsAtMost = (a: Counts, b: Counts): boolean =>
  a.read_only <= b.read_only && a.mutating <= b.mutating && a.unknown <= b.unknown;

const joinRows = (f: ReadonlyArray<ToolRow>, g: ReadonlyArray<ToolRow>): ReadonlyArray<ToolRow> => {
  const ledger = new Ledger();
  for (const row of f) ledger.raise(row);
  for (const row of g) ledger.raise(row);
  return ledger.rows;
};

const joinSnapshots = (f: SideEffects | null, g: SideEffects | null): SideEffects | null => {
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
};

const joinCounts = (a: Counts, b: Counts): Counts => ({
  read_only: Math.max(a.read_only, b.read_only),
  mutating: Math.max(a.mutating, b.mutating),
  unknown: Math.max(a.unknown, b.unknown),
});

const joinCounters = (a: Counters, b: Counters): Counters => {
  const joined: Record<string, number> = { ...a };
  for (const [name, value] of Object.entries(b)) joined[name] = Math.max(joined[name] ?? 0, value);
  return { ...joined, parts: joined.parts ?? 0, bytes: joined.bytes ?? 0, characters: joined.characters ?? 0 };
};
