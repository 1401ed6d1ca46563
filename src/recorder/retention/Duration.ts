/** Parses a duration in the form that an operator types. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const units = { s: second, m: minute, h: hour, d: day, w: 7 * day } as const;

/**
 * Parses a duration, for example `30d`, `12h`, `90m`, `30s` or `2w`. Returns milliseconds, or undefined if the text is not a
 * duration.
 */
export const parseDuration = (text: string): number | undefined => {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  // The pattern guarantees that the unit is in the table.
  return count === undefined ? undefined : Number(count) * units[unit as keyof typeof units];
};
