/**
 * Parses times as a person types them.
 */

import { parseDuration } from "../../recorder/retention/Duration.ts";

/**
 * Parses a time: a duration before now, or an ISO date.
 *
 * @returns milliseconds since the epoch; undefined if it is neither
 */
export const parseMoment = (text: string, now: number): number | undefined => {
  const ago = parseDuration(text);
  if (ago !== undefined) return now - ago;
  const at = /^\d{4}-\d\d-\d\d(T.*)?$/.test(text) ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
};
