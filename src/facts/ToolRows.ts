/**
 * Keeps the rows of an attempt's tool ledger, bounded (law L11), and defines folded rows.
 *
 * A row only grows. Beyond the limit, the rows of each executor are folded into one row, which holds the highest value of each field. Calls
 * that can no longer be distinguished count as the worst of them, so a folded row never allows a retry that its rows would have forbidden.
 */
import { isAtMost, pickHigher, ToolPhase, type ToolRow } from "../domain/AttemptFacts.ts";
import { toolRowsMax } from "../domain/Limits.ts";
import { type Executor, ToolEffect } from "../domain/SideEffects.ts";

/**
 * Returns the `call` of the row that holds an executor's folded calls. The key of a call, `choice.ordinal`, never has this form.
 */
export const foldKey = (executor: Executor): string => `folded.${executor}`;

/** Returns true if a row represents several calls. */
export const isFolded = (row: ToolRow): boolean => row.call === foldKey(row.executor);

/** Maximum rows that keep their own call. The remaining two rows are for the folds of the two executors. */
const ownRowsMax = toolRowsMax - 2;

/** A growing ledger. Rows are replaced, never changed, so that snapshots can share them. */
export class Ledger {
  readonly rows: Array<ToolRow> = [];
  /** Created with the first row, because few attempts have any. */
  #index: Map<string, number> | undefined;
  #lastFolded = "";
  /** Number of folded calls. A signal counts as another call if its key differs from that of the previous folded signal. */
  folded = 0;

  /**
   * Returns the row of a call. If there is none and the ledger is full, returns the row that holds the folded calls of that executor, if
   * any.
   */
  find(executor: Executor, call: string): ToolRow | undefined {
    const at = this.#index?.get(indexKey(executor, call));
    if (at !== undefined) return this.rows[at];
    return this.#isFull() ? this.#foldedRow(executor) : undefined;
  }

  /** Returns true if `raise` with the same row would change a row. */
  canRaise(row: ToolRow): boolean {
    const known = this.find(row.executor, row.call);
    return known === undefined || !isSame(known, this.#merge(known, row));
  }

  /**
   * Adds a call, or raises its row.
   *
   * @param row the current state of the call; a phase below the known one changes nothing
   * @returns true if a row changed
   */
  raise(row: ToolRow): boolean {
    const key = indexKey(row.executor, row.call);
    const at = this.#index?.get(key);
    if (at === undefined && !this.#isFull()) {
      this.#indexNext(key);
      this.rows.push(row);
      return true;
    }
    const known = this.find(row.executor, row.call);
    if (at === undefined) this.#count(key);
    if (known === undefined) {
      const fold = foldKey(row.executor);
      this.#indexNext(indexKey(row.executor, fold));
      this.rows.push({ ...row, call: fold, tool: "" });
      return true;
    }
    const next = this.#merge(known, row);
    if (isSame(known, next)) return false;
    this.rows[this.#index?.get(indexKey(next.executor, next.call)) ?? this.rows.length] = next;
    return true;
  }

  /** Maps this key to the row that is added next. */
  #indexNext(key: string): void {
    this.#index ??= new Map();
    this.#index.set(key, this.rows.length);
  }

  #isFull(): boolean {
    return this.#index !== undefined && this.#index.size >= ownRowsMax;
  }

  #foldedRow(executor: Executor): ToolRow | undefined {
    const at = this.#index?.get(indexKey(executor, foldKey(executor)));
    return at === undefined ? undefined : this.rows[at];
  }

  #merge(known: ToolRow, row: ToolRow): ToolRow {
    return isFolded(known) ? foldRows(known, row) : joinRows(known, row);
  }

  #count(key: string): void {
    if (key !== this.#lastFolded) this.folded += 1;
    this.#lastFolded = key;
  }
}

/**
 * Joins two states of one call. The later phase counts. A name that arrived later is kept, but an effect that was unknown before the name
 * arrived stays unknown, because facts only grow.
 */
export const joinRows = (a: ToolRow, b: ToolRow): ToolRow => ({
  call: a.call,
  tool: a.tool === "" ? b.tool : a.tool,
  executor: a.executor,
  effect: pickHigher(ToolEffect, a.effect, b.effect),
  phase: pickHigher(ToolPhase, a.phase, b.phase),
});

/**
 * Joins the rows of different calls of one executor into the row of their fold.
 *
 * The fold has the higher effect and the later phase, with one exception: if one runtime call is settled, the other is not, and one of them
 * may change something, the phase is `outcome_unknown`. A plain maximum would be `settled`, and a continuation would ignore a call that may
 * still run.
 */
export const foldRows = (a: ToolRow, b: ToolRow): ToolRow => {
  const effect = pickHigher(ToolEffect, a.effect, b.effect);
  const settledBesideOpen = (a.phase === "settled") !== (b.phase === "settled");
  const uncertain = settledBesideOpen && a.executor === "runtime" && effect !== "read_only";
  return {
    call: foldKey(a.executor),
    tool: "",
    executor: a.executor,
    effect,
    phase: uncertain ? "outcome_unknown" : pickHigher(ToolPhase, a.phase, b.phase),
  };
};

/** Returns true if the fold `b` covers row or fold `a`. */
export const isFoldAbove = (b: ToolRow, a: ToolRow): boolean =>
  a.executor === b.executor &&
  isAtMost(ToolEffect, a.effect, b.effect) &&
  (isTop(b) || (isAtMost(ToolPhase, a.phase, b.phase) && !isTop(a)));

/** True for the last phase of a fold, `outcome_unknown`. No later event changes it, not even a settle. */
const isTop = (row: ToolRow): boolean =>
  row.executor === "runtime" && row.phase === "outcome_unknown" && row.effect !== "read_only";

const indexKey = (executor: Executor, call: string): string => (executor === "runtime" ? call : `p ${call}`);

const isSame = (a: ToolRow, b: ToolRow): boolean => a.phase === b.phase && a.effect === b.effect && a.tool === b.tool;
