/**
 * Keeps the rows of an attempt's tool ledger, bounded (law L11), and says what a folded row is.
 *
 * A row only grows. Past the limit rows fold into one row per executor, their join, which never permits more than the
 * rows that went into it: calls that can no longer be told apart are taken at their worst.
 */
import { atMost, higher, ToolPhase, type ToolRow } from "../domain/AttemptFacts.ts";
import { toolRowsMax } from "../domain/Limits.ts";
import { type Executor, ToolEffect } from "../domain/SideEffects.ts";

/** The `call` of the two rows that hold what was folded. A key of an attempt is `choice.ordinal` and never looks so. */
export const foldedCall = (executor: Executor): string => `folded.${executor}`;

/** Whether a row stands for several calls. */
export const isFolded = (row: ToolRow): boolean => row.call === foldedCall(row.executor);

/** Rows that keep their own call. The two that are left belong to the folds of either executor. */
const ownRowsMax = toolRowsMax - 2;

/** A growing ledger. Rows are replaced, never changed, so that a snapshot may share them. */
export class Ledger {
  readonly rows: Array<ToolRow> = [];
  /** Made with the first row: most attempts have none. */
  #index: Map<string, number> | undefined;
  #lastFolded = "";
  /** Calls that were folded, counted by their change of key. */
  folded = 0;

  /** The row of a call, or the fold that a new row of that executor would go to, or nothing. */
  find(executor: Executor, call: string): ToolRow | undefined {
    const at = this.#index?.get(indexKey(executor, call));
    if (at !== undefined) return this.rows[at];
    return this.#full() ? this.#fold(executor) : undefined;
  }

  /** Whether `raise` with the same arguments would change a row. */
  wouldRaise(row: ToolRow): boolean {
    const known = this.find(row.executor, row.call);
    return known === undefined || !same(known, this.#grown(known, row));
  }

  /**
   * Adds a call or lets its row grow.
   *
   * @param row what is now known of the call; a lower phase than the known one changes nothing
   * @returns whether a row changed
   */
  raise(row: ToolRow): boolean {
    const key = indexKey(row.executor, row.call);
    const at = this.#index?.get(key);
    if (at === undefined && !this.#full()) {
      this.#place(key);
      this.rows.push(row);
      return true;
    }
    const known = this.find(row.executor, row.call);
    if (at === undefined) this.#count(key);
    if (known === undefined) {
      const fold = foldedCall(row.executor);
      this.#place(indexKey(row.executor, fold));
      this.rows.push({ ...row, call: fold, tool: "" });
      return true;
    }
    const next = this.#grown(known, row);
    if (same(known, next)) return false;
    this.rows[this.#index?.get(indexKey(next.executor, next.call)) ?? this.rows.length] = next;
    return true;
  }

  /** Keeps that the next row is this key's. */
  #place(key: string): void {
    this.#index ??= new Map();
    this.#index.set(key, this.rows.length);
  }

  #full(): boolean {
    return this.#index !== undefined && this.#index.size >= ownRowsMax;
  }

  #fold(executor: Executor): ToolRow | undefined {
    const at = this.#index?.get(indexKey(executor, foldedCall(executor)));
    return at === undefined ? undefined : this.rows[at];
  }

  #grown(known: ToolRow, row: ToolRow): ToolRow {
    return isFolded(known) ? foldRows(known, row) : laterRow(known, row);
  }

  #count(key: string): void {
    if (key !== this.#lastFolded) this.folded += 1;
    this.#lastFolded = key;
  }
}

/**
 * Joins two states of one call: it is where it was last seen. A name that came later is kept; an effect that was taken
 * for unknown before the name came stays unknown (facts only grow).
 */
export const laterRow = (a: ToolRow, b: ToolRow): ToolRow => ({
  call: a.call,
  tool: a.tool === "" ? b.tool : a.tool,
  executor: a.executor,
  effect: higher(ToolEffect, a.effect, b.effect),
  phase: higher(ToolPhase, a.phase, b.phase),
});

/**
 * Joins the rows of different calls of one executor into the row of their fold.
 *
 * The effect is the higher one, the phase the later one, but for one case: a settled call beside one that is not, where
 * any of them may change something, folds to `outcome_unknown`. A plain maximum would say `settled`, and a call that may
 * still run would be continued over.
 */
export const foldRows = (a: ToolRow, b: ToolRow): ToolRow => {
  const effect = higher(ToolEffect, a.effect, b.effect);
  const settledBesideOpen = (a.phase === "settled") !== (b.phase === "settled");
  const uncertain = settledBesideOpen && a.executor === "runtime" && effect !== "read_only";
  return {
    call: foldedCall(a.executor),
    tool: "",
    executor: a.executor,
    effect,
    phase: uncertain ? "outcome_unknown" : higher(ToolPhase, a.phase, b.phase),
  };
};

/** Whether the fold `b` stands for at least what row or fold `a` says. */
export const foldCovers = (b: ToolRow, a: ToolRow): boolean =>
  a.executor === b.executor &&
  atMost(ToolEffect, a.effect, b.effect) &&
  (isTop(b) || (atMost(ToolPhase, a.phase, b.phase) && !isTop(a)));

/** Of a fold's phases `outcome_unknown` is the last one: nothing takes it back, not even a later settle. */
const isTop = (row: ToolRow): boolean =>
  row.executor === "runtime" && row.phase === "outcome_unknown" && row.effect !== "read_only";

const indexKey = (executor: Executor, call: string): string => (executor === "runtime" ? call : `p ${call}`);

const same = (a: ToolRow, b: ToolRow): boolean => a.phase === b.phase && a.effect === b.effect && a.tool === b.tool;
