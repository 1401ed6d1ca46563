/** Filters lists of runs in the same way for every store, from tables or from memory. */
import type { RunRecord } from "./RunRecord.ts";

/** Filter for a list of runs, newest first. */
export interface RunQuery {
  readonly state?: RunRecord["state"];
  /** Only runs with at least one incident. */
  readonly broken?: boolean;
  /** Only runs whose id, provider or model contains this text, ignoring the case of ASCII letters. */
  readonly text?: string;
  /** Only runs whose provider id contains this text, matched as for `text`. */
  readonly provider?: string;
  /** Only runs whose model contains this text, matched as for `text`. */
  readonly model?: string;
  /** Only runs that started at this time or later; wall clock, in milliseconds since the epoch. */
  readonly startedFrom?: number;
  /** Only runs that started before this time; wall clock, in milliseconds since the epoch. */
  readonly startedBefore?: number;
  /** Only runs that started before this run. Used for paging. */
  readonly before?: string;
  /** Maximum runs to list; default 100. */
  readonly limit?: number;
}

/** Lowercases ASCII letters only, so that the result is the same as that of any database. */
export const foldCase = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * True if a run matches a query.
 *
 * @param query the filter; its `before` and `limit` are ignored
 */
export const isListed = ({ incidents, provider, run_id, started_at, state }: RunRecord, query: RunQuery): boolean =>
  (query.state === undefined || state === query.state) &&
  (query.broken !== true || incidents.length > 0) &&
  has(query.text, run_id, provider.id, provider.model) &&
  has(query.provider, provider.id) &&
  has(query.model, provider.model) &&
  started_at >= (query.startedFrom ?? started_at) &&
  (query.startedBefore === undefined || started_at < query.startedBefore);

const has = (wanted: string | undefined, ...texts: ReadonlyArray<string | undefined>): boolean =>
  wanted === undefined || texts.some((text) => foldCase(text ?? "").includes(foldCase(wanted)));
