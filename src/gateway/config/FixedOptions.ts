/**
 * Finds the options that a reload cannot change, and keeps their values.
 */
import { isDeepStrictEqual } from "node:util";
import { type Entry, valueAt, withValue } from "./Option.ts";
import { entries } from "./Options.ts";
import type { ProgramOptions } from "./ProgramOptions.ts";

/**
 * Lists the changed options that need a restart.
 *
 * @param among the options to compare
 */
export const fixedChangesIn = (
  started: ProgramOptions,
  next: ProgramOptions,
  among: ReadonlyArray<Entry> = entries,
): ReadonlyArray<string> =>
  among
    .filter(
      (entry) =>
        entry.restart !== undefined && !isDeepStrictEqual(startValueOf(entry, started), startValueOf(entry, next)),
    )
    .map(({ name }) => name);

const startValueOf = ({ default: byDefault, path, restart }: Entry, options: ProgramOptions): unknown => {
  const value = valueAt(options, path);
  return restart === "on_or_off" ? value !== undefined : (value ?? byDefault);
};

/**
 * Merges a reload for a new worker. Options that need a restart keep their original values. Otherwise a worker that replaces a dead one
 * could have another store or address than its siblings.
 */
export const keepFixed = (started: ProgramOptions, next: ProgramOptions): ProgramOptions =>
  entries
    .filter(({ restart }) => restart !== undefined)
    .reduce((options, { path, restart }) => {
      const before = valueAt(started, path);
      // A certificate can be replaced without a restart.
      const renewed = restart === "on_or_off" && before !== undefined ? valueAt(next, path) : undefined;
      return withValue(options, path, renewed ?? before);
    }, next);
