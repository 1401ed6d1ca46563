/**
 * Reads the wait of a refusal from its message: "will reset after 27h41m36s", "try again in 20s", "resets 12am (UTC)".
 *
 * It is a last resort, because headers and fields of the body take precedence. A time of day is relative to the response's own date. A time
 * in a named zone other than UTC is not read, but a time with an offset (UTC+8) is.
 */
import { messageCharactersMax } from "../thrown/CauseChain.ts";
import { nextTimeOfDay, toUtc } from "./Instants.ts";
import { clampWait, parseDuration } from "./RetryAfter.ts";

/** Maximum cues that are read in one message. */
const cuesMax = 16;

/** Maximum length of the text after a cue that is read, in UTF-16 code units. */
const tailCharactersMax = 64;

/** Words after which a message tells the time at which requests are accepted again. */
const cues = /\b(?:try again|retry|resets?|wait|available|regain access|renews?|refills?)\b/gi;

/** Words between a cue and the time. */
const fillers =
  /^(?:[\s:·,~-]|(?:again|your request|the request|it|will|be|is|please|for|in|after|at|on|until|about|around|approximately)\b)*/i;

/**
 * Reads the wait that a message names: a duration, a date or a time of day.
 *
 * @param message any string
 * @param nowMs the time at which the response was sent, in milliseconds since the epoch; without it a date or a time of day is not read
 * @returns milliseconds, at most `retryAfterMsMax`; undefined if the message names no time, or a time in the past
 */
export const read = (message: string, nowMs?: number): number | undefined => {
  const text = message.slice(0, messageCharactersMax);
  let count = 0;
  for (const { 0: cue, index } of text.matchAll(cues)) {
    count += 1;
    if (count > cuesMax) return undefined;
    const start = index + cue.length;
    const tail = text.slice(start, start + tailCharactersMax).replace(fillers, "");
    const wait = timeIn(tail, nowMs);
    if (wait !== undefined) return clampWait(wait);
  }
  return undefined;
};

const timeIn = (tail: string, nowMs: number | undefined): number | undefined => {
  const atMs = parseDateIn(tail);
  if (atMs === "none") return timeOfDayIn(tail, nowMs) ?? parseDurationIn(tail);
  return atMs === undefined || nowMs === undefined || atMs < nowMs ? undefined : atMs - nowMs;
};

const parseDurationIn = (tail: string): number | undefined => {
  const found = /^(?:\d{1,9}(?:\.\d{1,9})?\s?[a-z]+(?:,? and |, ?| )?){1,6}/i.exec(tail)?.[0];
  return found === undefined || /^\s*ago\b/i.test(tail.slice(found.length)) || /\bago\b/i.test(found)
    ? undefined
    : parseDuration(found);
};

/** Reads "2026-11-30 00:00", with or without a zone, as milliseconds since the epoch. Returns "none" if there is no date. */
const parseDateIn = (tail: string): number | undefined | "none" => {
  const found = /^(\d{4})-(\d\d)-(\d\d)(?:(?:T|,? at |,? )(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?/i.exec(tail);
  if (found === null) return "none";
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1)
    .map((digits: string | undefined) => Number(digits ?? 0));
  const offsetMs = parseOffsetIn(tail.slice(found[0].length));
  const atMs = toUtc(year, month, day, hour, minute, second);
  return atMs === undefined || offsetMs === undefined ? undefined : atMs - offsetMs;
};

/** Reads "12am (UTC)", "3:30 PM", "15:00 UTC" as the wait until the next such time. */
const timeOfDayIn = (tail: string, nowMs: number | undefined): number | undefined => {
  const found = /^(\d{1,2})(?::(\d\d))?\s?(?:([ap])\.?m\b\.?)?/i.exec(tail);
  if (found === null || nowMs === undefined) return undefined;
  const [whole, hours = "", minutes, half] = found;
  if (minutes === undefined && half === undefined) return undefined;
  const hour = half === undefined ? Number(hours) : onTheClock(Number(hours), half);
  const minute = Number(minutes ?? 0);
  const offsetMs = parseOffsetIn(tail.slice(whole.length));
  if (hour === undefined || hour > 24 || minute > 59 || offsetMs === undefined) return undefined;
  return nextTimeOfDay((hour * 60 + minute) * 60_000 - offsetMs, nowMs) - nowMs;
};

/** Converts an hour from 1 to 12 to one from 0 to 23. */
const onTheClock = (hour: number, half: string): number | undefined =>
  hour < 1 || hour > 12 ? undefined : (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);

/**
 * Returns the offset from UTC, in milliseconds. No zone means UTC, and "UTC+8" is 8 hours. Undefined for a named zone, because its offset
 * is not known here.
 */
const parseOffsetIn = (rest: string): number | undefined => {
  const zone = /^(?::\d\d)?\s{0,2}\(?(?:Z\b|(?:UTC|GMT)(?![a-z]))?(?:([+-])(\d{1,2})(?::?(\d\d))?(?!\d))?/i.exec(rest);
  const after = rest.slice(zone?.[0].length ?? 0);
  if (/^(?:[A-Z][A-Za-z_]+\/[A-Z]|[A-Z]{1,4}T\b|(?:[A-Z][a-z]+ ){1,2}time\b|local\b)/.test(after)) return undefined;
  const [, sign, hours = "0", minutes = "0"] = zone ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
};
