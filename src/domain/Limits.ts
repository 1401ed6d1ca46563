/**
 * Names every limit on what the domain may hold, with its unit. Nothing of the domain grows without one (law L11).
 */
import * as Schema from "effect/Schema";

/** Longest label (tool name, call id, error code, model name) that is kept, in UTF-16 code units. */
export const labelCharactersMax = 128;

/** Most ledger rows of an attempt before further calls fold into their join. */
export const toolRowsMax = 256;

/** Most calls of an attempt that are kept by name, on record and for the guard. A further call cannot start. */
export const callsMax = 1_024;

/** First evidence records kept of a run; what lies between them and the last ones is counted. */
export const evidenceFirstMax = 16;
/** Last evidence records kept of a run. */
export const evidenceLastMax = 48;

/** Most incidents kept of a run; the oldest recovered ones are dropped and counted. */
export const incidentsMax = 32;

/** Most times that a run is taken over by another process since a person's last word (opencode resumes at boot as often). */
export const resumesMax = 10;

/** Deepest cause of an unknown error that is read. */
export const causeDepthMax = 8;

/** A bounded piece of text: names and codes, never content. */
export const Label = Schema.String.check(Schema.isMaxLength(labelCharactersMax));

/** A duration in milliseconds, finite and not negative. */
export const Milliseconds = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0));

/** An HTTP status code. */
export const Status = Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }));

/**
 * Cuts a text of unknown origin to a label.
 *
 * @param text any text
 * @returns its first `labelCharactersMax` code units
 */
export const label = (text: string): string =>
  text.length <= labelCharactersMax ? text : text.slice(0, labelCharactersMax);

/** A map or set, as far as `dropOldest` needs it. */
interface Entries<K> {
  readonly size: number;
  readonly keys: () => Iterable<K>;
  readonly delete: (key: K) => boolean;
}

/**
 * Drops the oldest entries of a map or set until it is within its limit.
 *
 * @param max most entries that stay
 */
export const dropOldest = <K>(entries: Entries<K>, max: number): void => {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return;
    entries.delete(oldest);
  }
};
