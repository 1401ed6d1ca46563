/**
 * Keeps the options that are read at the start only as a process was started with them.
 */
import { isDeepStrictEqual } from "node:util";
import { type Entry, valueAt, withValue } from "./Option.ts";
import { entries } from "./Options.ts";
import type { ProgramOptions } from "./ProgramOptions.ts";

/**
 * The options that differ and need a restart.
 *
 * @param among those that are compared
 */
export const fixedIn = (
  started: ProgramOptions,
  next: ProgramOptions,
  among: ReadonlyArray<Entry> = entries,
): ReadonlyArray<string> =>
  among
    .filter(
      (entry) => entry.restart !== undefined && !isDeepStrictEqual(startsAs(entry, started), startsAs(entry, next)),
    )
    .map(({ name }) => name);

const startsAs = ({ default: byDefault, path, restart }: Entry, options: ProgramOptions): unknown => {
  const value = valueAt(options, path);
  return restart === "on_or_off" ? value !== undefined : (value ?? byDefault);
};

/**
 * The next options as a process takes them that starts beside others: what needs a restart is as those have it. A worker that replaces a dead one
 * with other options would have another store than its siblings, or another address.
 */
export const asStarted = (started: ProgramOptions, next: ProgramOptions): ProgramOptions =>
  entries
    .filter(({ restart }) => restart !== undefined)
    .reduce((options, { path, restart }) => {
      const before = valueAt(started, path);
      // A certificate may be renewed.
      const renewed = restart === "on_or_off" && before !== undefined ? valueAt(next, path) : undefined;
      return withValue(options, path, renewed ?? before);
    }, next);
