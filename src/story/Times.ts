/**
 * Formats times and amounts for people.
 */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Formats a duration in its largest unit: `12 s`, `3 min`, `5 h`, `40 d`. */
export const formatRough = (ms: number): string => {
  if (ms < minute) return `${Math.floor(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h`;
  return `${Math.floor(ms / day)} d`;
};

/** Formats a measured duration: `375 ms`, `4.2 s`, `3 min 10 s`, `5 h 2 min`, `40 d`. */
export const formatLasting = (ms: number): string => {
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < minute) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min ${Math.floor((ms % minute) / second)} s`;
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h ${Math.floor((ms % hour) / minute)} min`;
  return `${Math.floor(ms / day)} d`;
};

/**
 * Formats the time since an event or until it, in one unit.
 *
 * @param at wall-clock time, in milliseconds since the epoch
 * @param now wall-clock time, in milliseconds since the epoch
 */
export const formatRelative = (at: number, now: number): string => {
  const ms = Math.abs(now - at);
  if (ms < 2 * second) return "now";
  return now >= at ? `${formatRough(ms)} ago` : `in ${formatRough(ms)}`;
};

/** Last moment of the ECMAScript calendar, in milliseconds since the epoch (ECMA-262, 21.4.1.1). */
const latest = 8.64e15;

/** Formats a moment in UTC: `2026-11-22 01:57:22 UTC`. A time after the end of the calendar is formatted as a number. */
export const formatUtc = (at: number): string =>
  at <= latest ? `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC` : `${at} ms`;

/** Formats a moment in local time: `2026-11-22 01:57:22`. */
export const formatLocal = (at: number): string => {
  const date = new Date(at);
  return `${[date.getFullYear(), padTwo(date.getMonth() + 1), padTwo(date.getDate())].join("-")} ${formatLocalTime(at)}`;
};

/** Formats the local time of day: `01:57:22`. */
export const formatLocalTime = (at: number): string => {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(padTwo).join(":");
};

const padTwo = (value: number): string => String(value).padStart(2, "0");

/** Formats a number with its thousands separated. */
export const groupDigits = (amount: number): string => String(Math.round(amount)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** Formats a count with its noun: `one attempt`, `3 attempts`. */
export const formatCount = (amount: number, noun: string): string =>
  amount === 1 ? `one ${noun}` : `${amount} ${noun}s`;

/** Formats how often something happened: `once`, `3 times`. */
export const formatTimes = (amount: number): string => (amount === 1 ? "once" : `${amount} times`);
