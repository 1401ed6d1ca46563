/**
 * Writes one log event as one line, as text for a person or as JSON for a program. A line never contains a line break or a control
 * character, so data from outside cannot forge one.
 */
import { Cause, type Logger } from "effect";
import { dropOldest } from "../../domain/Limits.ts";

/** The formats of a line. */
export const logFormats = ["text", "json"] as const;

/** One of `logFormats`. */
export type LogFormat = (typeof logFormats)[number];

/** The parts of a log event that its line shows. */
export interface LogEvent extends Pick<Logger.Options<unknown>, "cause" | "date" | "logLevel" | "message"> {
  readonly annotations: Readonly<Record<string, unknown>>;
}

/** Maximum length of a field's value, in characters. The rest is cut. */
export const valueCharactersMax = 2_048;

/** Maximum fields of a line. Further ones are dropped. */
export const fieldsMax = 48;

/** Names reserved for the fields that every line has. */
const head = ["time", "level", "message"] as const;

/**
 * Formats the line of an event, without a line break at its end.
 *
 * @param format `text`: time, level, message and then `name=value`; `json`: an object with `time`, `level`, `message` first
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
 * Splits an event: strings form the message; records, annotations and a cause become fields.
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

/** Returns the name of a field, cached because the same few dozen recur. */
const nameOf = (name: string): string => {
  const known = names.get(name);
  if (known !== undefined) return known;
  const made = sanitizeName(name);
  if (name.length > nameCharactersMax) return made;
  names.set(name, made);
  dropOldest(names, namesMax);
  return made;
};

/** At most `namesMax` cached names. */
const names = new Map<string, string>();

const namesMax = 256;

/** Maximum length of a cached name, in characters. */
const nameCharactersMax = 64;

/** Renames a field that could be mistaken for one that every line has. */
const sanitizeName = (name: string): string => {
  const word = /^[\w.-]*$/.test(name) ? truncate(name) : truncate(name).replaceAll(/[^\w.-]/g, "_");
  return head.some((taken) => taken === word) ? `_${word}` : word;
};

/** Numbers and booleans stay as they are. Anything else becomes text, and a nested value its JSON. */
const fieldOf = (value: unknown): unknown => {
  if (typeof value === "boolean" || value === null) return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "string") return truncate(value);
  if (value instanceof Error) return truncate(`${value.name}: ${value.message}`);
  try {
    return truncate(JSON.stringify(value) ?? String(value));
  } catch {
    // A circular value, or a bigint.
    return truncate(String(value));
  }
};

const truncate = (text: string): string =>
  text.length <= valueCharactersMax ? text : `${text.slice(0, valueCharactersMax - 1)}…`;

/** Writes plain words as they are, anything else as a JSON string. */
const textOf = (value: unknown): string =>
  typeof value === "string" && !/^[\w.:/@%+,;~…-]+$/.test(value) ? JSON.stringify(value) : String(value);

/** Formats a message, which is a sentence of the program. A line break in it is written as `\n`. */
const escapeLineBreaks = (message: string): string => message.replaceAll("\r", "\\r").replaceAll("\n", "\\n");

/**
 * Escapes every character that a terminal or a line reader might interpret as `\uXXXX`: control characters, line and paragraph
 * separators, and marks that change the direction of text.
 */
const escapeControls = (line: string): string =>
  isPrintable.test(line)
    ? line
    : line.replaceAll(
        // Tabs are escaped too, so that a value cannot shift columns.
        /[\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );

/** Nearly every line is plain ASCII and needs no escaping. */
const isPrintable = /^[\u0020-\u007e]*$/;
