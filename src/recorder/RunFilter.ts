/**
 * Says which runs a list has: the same for every store, whether it asks a table or its memory.
 */
import type { RunRecord } from "./RunRecord.ts";

/** Which runs to list, newest first. */
export interface RunQuery {
  readonly state?: RunRecord["state"];
  /** Only runs with at least one incident. */
  readonly broken?: boolean;
  /** Only runs whose id, provider or model contains this text; the case of ASCII letters makes no difference. */
  readonly text?: string;
  /** Only runs whose provider's id contains this text, read as `text` is. */
  readonly provider?: string;
  /** Only runs whose model contains this text, read as `text` is. */
  readonly model?: string;
  /** Only runs that started then or later; wall clock, milliseconds since the epoch. */
  readonly startedFrom?: number;
  /** Only runs that started earlier; wall clock, milliseconds since the epoch. */
  readonly startedBefore?: number;
  /** Only runs that started before this run; for paging. */
  readonly before?: string;
  /** At most this many runs; default 100. */
  readonly limit?: number;
}

/** A text with its ASCII letters small: what every database can do to a column in the same way. */
export const folded = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * Whether a list has a run, its place in the list aside.
 *
 * @param query `before` and `limit` are not looked at
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
  wanted === undefined || texts.some((text) => folded(text ?? "").includes(folded(wanted)));
