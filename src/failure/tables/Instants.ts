/** Parses points in time in the forms that headers use. It does not use `Date`, because `Date` is not pure. */

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/**
 * Parses an HTTP date in any of the three forms of RFC 9110, 5.6.7: IMF-fixdate, RFC 850, asctime.
 *
 * @param nowMs wall-clock time that determines the century of RFC 850's years; without it, RFC 850 dates are not read
 * @returns milliseconds since the epoch
 */
export const parseHttpDate = (value: string, nowMs: number | undefined): number | undefined => {
  const zoned = /^[a-z]{3,9}, (\d{1,2})[ -]([a-z]{3})[ -](\d{2}|\d{4}) (\d\d):(\d\d):(\d\d) (?:GMT|UTC|\+0000)$/i.exec(
    value,
  );
  const ascii = /^[a-z]{3} ([a-z]{3}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})$/i.exec(value);
  const [day, month, year, hour, minute, second] =
    zoned !== null
      ? [zoned[1], zoned[2], zoned[3], zoned[4], zoned[5], zoned[6]]
      : ascii !== null
        ? [ascii[2], ascii[1], ascii[6], ascii[3], ascii[4], ascii[5]]
        : [];
  const index = months.indexOf((month ?? "").toLowerCase());
  if (index < 0 || year === undefined) return undefined;
  if (year.length !== 4 && nowMs === undefined) return undefined;
  const fullYear = year.length === 4 || nowMs === undefined ? Number(year) : resolveYear(Number(year), nowMs);
  const days = daysSinceEpoch(fullYear, index + 1, Number(day));
  return ((days * 24 + Number(hour)) * 60 + Number(minute)) * 60_000 + Number(second) * 1_000;
};

/**
 * Parses a timestamp of RFC 3339, for example `2026-10-21T07:28:30.5Z`.
 *
 * @returns milliseconds since the epoch
 */
export const parseTimestamp = (value: string): number | undefined => {
  const found = /^(\d{4})-(\d\d)-(\d\d)[t ](\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)(?:z|([+-])(\d\d):?(\d\d))$/i.exec(value);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1, 7).map(Number);
  const atMs = toUtc(year, month, day, hour, minute, second);
  const ahead = (found[7] === "-" ? -1 : 1) * (Number(found[8] ?? 0) * 60 + Number(found[9] ?? 0));
  return atMs === undefined ? undefined : atMs - ahead * 60_000;
};

/**
 * Converts a date and a time of day in UTC to milliseconds since the epoch.
 *
 * @returns undefined if a part is out of its range
 */
export const toUtc = (
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined => {
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second >= 61) return undefined;
  return ((daysSinceEpoch(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1_000;
};

const dayMs = 86_400_000;

/**
 * Returns the next instant at which a clock in UTC shows a time of day.
 *
 * @param timeMs milliseconds since midnight; a value outside the day wraps around
 * @param nowMs milliseconds since the epoch
 */
export const nextTimeOfDay = (timeMs: number, nowMs: number): number => {
  const wait = (timeMs - nowMs) % dayMs;
  return nowMs + (wait < 0 ? wait + dayMs : wait);
};

/** Returns the full year. A two-digit year that seems more than 50 years ahead is in the past (RFC 9110, 5.6.7). */
const resolveYear = (year: number, nowMs: number): number => {
  const thisYear = 1970 + Math.floor(nowMs / 31_556_952_000);
  const candidate = thisYear - (thisYear % 100) + year;
  return candidate > thisYear + 50 ? candidate - 100 : candidate;
};

/** Returns the days from 1970-01-01 to a date of the Gregorian calendar (the civil calendar counted in eras of 400 years). */
const daysSinceEpoch = (year: number, month: number, day: number): number => {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
};
