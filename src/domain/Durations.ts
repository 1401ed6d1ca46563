/**
 * Reads durations in options. A number is milliseconds; every other input of `Duration`, for example `"5 seconds"`, is accepted too.
 */
import * as Duration from "effect/Duration";
import * as Option from "effect/Option";

/** Converts a duration to milliseconds. Returns NaN for anything that is not a duration, so that a check of its range refuses it. */
export const toMs = (given: Duration.Input): number => {
  if (typeof given === "number") return given;
  if (hasUnknownUnit(given)) return Number.NaN;
  return Option.getOrElse(Option.map(Duration.fromInput(given), Duration.toMillis), () => Number.NaN);
};

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];

/** True for an object that `Duration` would read as zero, because it has no unit or a misspelt one. */
const hasUnknownUnit = (given: unknown): boolean => {
  if (typeof given !== "object" || given === null || Array.isArray(given) || Duration.isDuration(given)) return false;
  const names = Object.keys(given);
  return names.length === 0 || names.some((name) => !units.includes(name));
};

/**
 * Converts an option to milliseconds.
 *
 * @param field name of the option, for the error
 * @throws TypeError if the value is not a duration or is negative
 */
export const readMs = (field: string, given: Duration.Input): number => {
  const ms = toMs(given);
  if (ms >= 0) return ms;
  const shown = typeof given === "number" ? String(given) : `a value of type ${typeof given}`;
  throw new TypeError(`${field}: expected milliseconds or a duration, not below 0, got ${shown}`);
};
