/**
 * Formats one log event as one line, as text for a person or as JSON for a program. A line contains no line breaks or control characters,
 * so that no value from outside can forge a line.
 */
import { Cause, type Logger } from "effect";
import { dropOldest } from "../../domain/Limits.ts";

/** The formats of a line. */
export const logFormats = ["text", "json"] as const;

/** Format of log lines: for people or for machines. */
export type LogFormat = (typeof logFormats)[number];

/** The parts of a log event that appear in its line. */
export interface LogEvent extends Pick<Logger.Options<unknown>, "cause" | "date" | "logLevel" | "message"> {
  readonly annotations: Readonly<Record<string, unknown>>;
}

/** Maximum length of a field's value, in characters. The rest is cut. */
export const valueCharactersMax = 2_048;

/** Maximum number of fields in a line. Further fields are dropped. */
export const fieldsMax = 48;

/** Names of the fields that every line has. */
const head = ["time", "level", "message"] as const;

/**
 * Formats the line of an event, without a line break at its end.
 *
 * @param format `text`: time, level, message, then `name=value` fields; `json`: an object that starts with `time`, `level` and `message`
 */
export const lineOf = (format: LogFormat, event: LogEvent): string => {
  const time = event.date.toISOString();
  const level = event.logLevel.toLowerCase();
  if (format === "json") {
    const fields: Array<readonly [string, unknown]> = [];
    const message = splitEvent(event, (name, value) => fields.push([name, value]));
    return escapeControls(JSON.stringify({ time, level, message, ...Object.fromEntries(fields) }));
  }
  let shown = "";
  const message = splitEvent(event, (name, value) => {
    shown += ` ${name}=${textOf(value)}`;
  });
  return escapeControls(`${time} ${level.toUpperCase().padEnd(5)} ${escapeLineBreaks(message)}${shown}`);
};

/**
 * Splits an event: its strings form the message; records, annotations and a cause become fields.
 *
 * @param tell called with each field, in order
 * @returns the message
 */
const splitEvent = (
  { annotations, cause, message }: LogEvent,
  tell: (name: string, value: unknown) => void,
): string => {
  const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message];
  let count = 0;
  const take = (name: string, value: unknown): void => {
    if (value === undefined || count >= fieldsMax) return;
    count += 1;
    tell(nameOf(name), fieldOf(value));
  };
  const takeAll = (record: Readonly<Record<string, unknown>>): void => {
    for (const name of Object.keys(record)) take(name, record[name]);
  };
  const texts: Array<string> = [];
  for (const part of parts) {
    if (isRecord(part)) takeAll(part);
    else texts.push(typeof part === "string" ? part : String(part));
  }
  takeAll(annotations);
  if (cause.reasons.length > 0) take("cause", Cause.pretty(cause));
  return truncate(texts.join(" "));
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Error);

/** Returns the name of a field. Names are cached, because the same few dozen are logged all the time. */
const nameOf = (name: string): string => {
  const known = names.get(name);
  if (known !== undefined) return known;
  const made = sanitizeName(name);
  if (name.length > nameCharactersMax) return made;
  names.set(name, made);
  dropOldest(names, namesMax);
  return made;
};

/** Cache of names, at most `namesMax`. */
const names = new Map<string, string>();

const namesMax = 256;

/** Maximum length of a cached name, in characters. */
const nameCharactersMax = 64;

/** Replaces invalid characters in a name, and renames a field that would clash with one that every line has. */
const sanitizeName = (name: string): string => {
  const word = /^[\w.-]*$/.test(name) ? truncate(name) : truncate(name).replaceAll(/[^\w.-]/g, "_");
  return head.some((taken) => taken === word) ? `_${word}` : word;
};

/** Keeps numbers and booleans. Any other value becomes text; objects become JSON. */
const fieldOf = (value: unknown): unknown => {
  if (typeof value === "boolean" || value === null) return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "string") return truncate(value);
  if (value instanceof Error) return truncate(`${value.name}: ${value.message}`);
  try {
    return truncate(JSON.stringify(value) ?? String(value));
  } catch {
    // The value is circular or a bigint.
    return truncate(String(value));
  }
};

const truncate = (text: string): string =>
  text.length <= valueCharactersMax ? text : `${text.slice(0, valueCharactersMax - 1)}…`;

/** Formats a plain word as it is, and any other value as a JSON string. */
const textOf = (value: unknown): string =>
  typeof value === "string" && !/^[\w.:/@%+,;~…-]+$/.test(value) ? JSON.stringify(value) : String(value);

/** Escapes line breaks in a message. A message is a sentence of the program, so it is not quoted. */
const escapeLineBreaks = (message: string): string => message.replaceAll("\r", "\\r").replaceAll("\n", "\\n");

/**
 * Escapes characters that a terminal or a line reader might interpret, as `\uXXXX`: control characters, line and paragraph separators, and
 * marks that change the direction of text.
 */
const escapeControls = (line: string): string =>
  isPrintable.test(line)
    ? line
    : line.replaceAll(
        // Tabs are escaped too. Otherwise a value could shift columns.
        /[\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );

/** Matches plain ASCII. Nearly every line consists of it and needs no escaping. */
const isPrintable = /^[\u0020-\u007e]*$/;
