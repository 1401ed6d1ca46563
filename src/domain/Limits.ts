/** Defines every limit of the domain, each with its unit. Nothing in the domain grows without a limit (law L11). */
import * as Schema from "effect/Schema";

/** Maximum length of a label (tool name, call id, error code, model name), in UTF-16 code units. */
export const labelCharactersMax = 128;

/** Maximum ledger rows of an attempt. Further calls are folded into one row per executor. */
export const toolRowsMax = 256;

/** Maximum calls of an attempt that are kept one by one, on record and by ToolGuard. A further call cannot start. */
export const callsMax = 1_024;

/**
 * Number of evidence records kept from the start of a run. Records between the first `evidenceFirstMax` and the last `evidenceLastMax` are
 * only counted.
 */
export const evidenceFirstMax = 16;
/** Number of evidence records kept from the end of a run. */
export const evidenceLastMax = 48;

/** Maximum incidents kept of a run. Beyond it the oldest recovered incidents are dropped and counted. */
export const incidentsMax = 32;

/** Maximum takeovers of a run by another process since the last human answer. opencode uses the same number for its resumes at boot. */
export const resumesMax = 10;

/** Maximum depth to which the causes of an unknown error are read. */
export const causeDepthMax = 8;

/** A bounded string for names and codes. Content never goes into a label. */
export const Label = Schema.String.check(Schema.isMaxLength(labelCharactersMax));

/** A duration in milliseconds, finite and not negative. */
export const Milliseconds = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0));

/** An HTTP status code. */
export const Status = Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }));

/**
 * Truncates a string of unknown origin to a label.
 *
 * @returns its first `labelCharactersMax` code units
 */
export const label = (text: string): string =>
  text.length <= labelCharactersMax ? text : text.slice(0, labelCharactersMax);

interface Entries<K> {
  readonly size: number;
  readonly keys: () => Iterable<K>;
  readonly delete: (key: K) => boolean;
}

/**
 * Drops the oldest entries of a map or set until it is within its limit.
 *
 * @param max maximum entries that remain
 */
export const dropOldest = <K>(entries: Entries<K>, max: number): void => {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return;
    entries.delete(oldest);
  }
};
