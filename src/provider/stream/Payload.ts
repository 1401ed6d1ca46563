/**
 * Reads the data of an event: is it whole, is it blank, and what is said where it is damaged.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { failed, none, type Observation, type Usage } from "../../domain/Observation.ts";
import { nothing } from "./Content.ts";
import type { Part, SseEvent } from "./Protocol.ts";

/** The sentinel that ends a stream of the OpenAI family. */
export const done = "[DONE]";

/** Whether data is that sentinel; the first character decides for every delta. */
export const isDone = (data: string): boolean => data.startsWith("[") && data.trimEnd() === done;

/** Whether an event that lacks its blank line is whole all the same: a cut inside JSON never parses. */
export const isWhole = (data: string): boolean => isDone(data) || Json.parse(data) !== undefined;

/** Data without a character in it: some servers send it to keep the connection alive. */
export const isBlank = (data: string): boolean => data === "" || (data.charCodeAt(0) <= 32 && data.trim() === "");

const damage: Failure = { kind: "protocol", reason: "damaged_frame" };

/**
 * The part of an event whose data is no JSON, for protocols whose own events have no names: damage, or an error told in
 * plain text, or the plain word of a named event that is none of the protocol's (`event: heartbeat`), which passes.
 */
export const unparsed = <Id extends string>(protocol: Id, event: SseEvent): Part<Id> => ({
  protocol,
  event,
  json: undefined,
  content: nothing,
  observation: event.event === "error" ? broken : isForeign(event) ? none : failed(damage),
});

/**
 * The same where a protocol's events have names: plain words under one of those names are damage, also with no JSON in sight.
 */
export const unparsedNamed = (protocol: string, event: SseEvent): Observation =>
  /^(?:message_|content_block_|response\.)/.test(event.event) ? failed(damage) : unparsed(protocol, event).observation;

/**
 * A finish reason; empty where the field says that nothing has finished yet, as servers spell it that turn a null into text,
 * and watsonx and Gemini's enum in words.
 */
export const reason = (value: unknown): string => {
  const text = Json.string(value);
  return unfinished.has(text.toLowerCase()) ? "" : text;
};

const unfinished: ReadonlySet<string> = new Set(["null", "none", "not_finished", "finish_reason_unspecified"]);

/** An error field that says something: servers with typed languages send `{}` or `""` where there is no error. */
export const saysError = (error: unknown): boolean =>
  typeof error === "object" && error !== null ? Object.keys(error).length > 0 : Boolean(error);

/**
 * Servers that forget the blank line between their events make one event of several: its lines, where each is whole by
 * itself, or undefined.
 */
export const several = (event: SseEvent): ReadonlyArray<SseEvent> | undefined => {
  if (!event.data.includes("\n") || Json.parse(event.data) !== undefined) return undefined;
  const lines = event.data.split("\n").filter((line) => !isBlank(line));
  if (lines.length < 2 || !lines.every(isWhole)) return undefined;
  return lines.map((data, index) => ({ ...event, data, bytes: index === 0 ? event.bytes : 0 }));
};

const broken: Observation = failed({ kind: "server_error", in_band: true });

const isForeign = (event: SseEvent): boolean => event.event !== "message" && !/^\s*[{[]/.test(event.data);

/** Token counts so far; undefined where neither is a number. */
export const usage = (input: unknown, output: unknown): Usage | undefined => {
  const input_tokens = Json.natural(input);
  const output_tokens = Json.natural(output);
  if (input_tokens === undefined && output_tokens === undefined) return undefined;
  return {
    ...(input_tokens === undefined ? {} : { input_tokens }),
    ...(output_tokens === undefined ? {} : { output_tokens }),
  };
};
