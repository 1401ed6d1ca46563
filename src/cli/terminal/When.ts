/**
 * Says times as a person does, and reads them as a person types them.
 */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const units = { s: second, m: minute, h: hour, d: day, w: 7 * day } as const;

/**
 * How long ago something was, or how soon it will be.
 *
 * @param at wall clock, milliseconds since the epoch
 * @param now wall clock, milliseconds since the epoch
 */
export const relative = (at: number, now: number): string => {
  const ms = Math.abs(now - at);
  if (ms < 2 * second) return "now";
  return now >= at ? `${rough(ms)} ago` : `in ${rough(ms)}`;
};

/** A duration in its largest unit: `12 s`, `3 min`, `5 h`, `40 d`. */
export const rough = (ms: number): string => {
  if (ms < minute) return `${Math.floor(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h`;
  return `${Math.floor(ms / day)} d`;
};

/** A duration as measured, in milliseconds: `375 ms`, `4.2 s`, `3 min 10 s`. */
export const lasting = (ms: number): string => {
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < minute) return `${(ms / second).toFixed(1)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min ${Math.floor((ms % minute) / second)} s`;
  return rough(ms);
};

/** A moment in the time of this machine: `2026-11-22 01:57:22`. */
export const moment = (at: number): string => {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const days = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${days} ${clock(at)}`;
};

/** The time of day in the time of this machine: `01:57:22`. */
export const clock = (at: number): string => {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((value) => String(value).padStart(2, "0"))
    .join(":");
};

/** A duration as it is typed, `30d`, `12h`, `90m`, `30s`, `2w`, in milliseconds; undefined when it is none. */
export const parseDuration = (text: string): number | undefined => {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  // The pattern proves that the unit is one of the table.
  return count === undefined ? undefined : Number(count) * units[unit as keyof typeof units];
};

/**
 * A moment as it is typed: a duration before now, or an ISO date.
 *
 * @returns milliseconds since the epoch; undefined when it is neither
 */
export const parseMoment = (text: string, now: number): number | undefined => {
  const ago = parseDuration(text);
  if (ago !== undefined) return now - ago;
  const at = /^\d{4}-\d\d-\d\d(T.*)?$/.test(text) ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
};
