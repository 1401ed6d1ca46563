/**
 * Reads the data of an event: complete, blank or damaged.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { failed, none, type Observation, type Usage } from "../../domain/Observation.ts";
import { nothing } from "./Content.ts";
import type { Part, SseEvent } from "./Protocol.ts";

/** The sentinel that ends a stream of the OpenAI family. */
export const done = "[DONE]";

/** True if the data is the `[DONE]` sentinel. For almost every event, the first character decides. */
export const isDone = (data: string): boolean => data.startsWith("[") && data.trimEnd() === done;

/** True if an event without its blank line is still complete. Incomplete JSON never parses. */
export const isWhole = (data: string): boolean => isDone(data) || Json.parse(data) !== undefined;

/** True if data has no visible character. Some servers send such data to keep the connection alive. */
export const isBlank = (data: string): boolean => data === "" || (data.charCodeAt(0) <= 32 && data.trim() === "");

const damage: Failure = { kind: "protocol", reason: "damaged_frame" };

/**
 * Returns the part of an event whose data is not JSON, for protocols without event names. The part is damage, an error in plain text, or an
 * unrelated event with plain data (`event: heartbeat`), which passes.
 */
export const unparsedPart = <Id extends string>(protocol: Id, event: SseEvent): Part<Id> => ({
  protocol,
  event,
  json: undefined,
  content: nothing,
  observation: event.event === "error" ? broken : isForeign(event) ? none : failed(damage),
});

/** Like `unparsedPart`, for protocols with event names: plain text in an event of the protocol is damage too. */
export const unparsedObservation = (protocol: string, event: SseEvent): Observation =>
  /^(?:message_|content_block_|response\.)/.test(event.event)
    ? failed(damage)
    : unparsedPart(protocol, event).observation;

/**
 * Reads a finish reason. The result is empty if the field says that nothing has finished yet: some servers send null as a string, and
 * watsonx and Gemini's enum have values for it.
 */
export const readReason = (value: unknown): string => {
  const text = Json.string(value);
  return unfinished.has(text.toLowerCase()) ? "" : text;
};

const unfinished: ReadonlySet<string> = new Set(["null", "none", "not_finished", "finish_reason_unspecified"]);

/** True if an error field is set. Servers written in typed languages send `{}` or `""` without an error. */
export const isError = (error: unknown): boolean =>
  typeof error === "object" && error !== null ? Object.keys(error).length > 0 : Boolean(error);

/** Splits an event of a server that omits the blank line between its events; undefined unless each line is complete by itself. */
export const splitLines = (event: SseEvent): ReadonlyArray<SseEvent> | undefined => {
  if (!event.data.includes("\n") || Json.parse(event.data) !== undefined) return undefined;
  const lines = event.data.split("\n").filter((line) => !isBlank(line));
  if (lines.length < 2 || !lines.every(isWhole)) return undefined;
  return lines.map((data, index) => ({ ...event, data, bytes: index === 0 ? event.bytes : 0 }));
};

const broken: Observation = failed({ kind: "server_error", in_band: true });

const isForeign = (event: SseEvent): boolean => event.event !== "message" && !/^\s*[{[]/.test(event.data);

/** Returns both token counts as a usage; undefined if neither is a number. */
export const usage = (input: unknown, output: unknown): Usage | undefined => {
  const input_tokens = Json.natural(input);
  const output_tokens = Json.natural(output);
  if (input_tokens === undefined && output_tokens === undefined) return undefined;
  return {
    ...(input_tokens === undefined ? {} : { input_tokens }),
    ...(output_tokens === undefined ? {} : { output_tokens }),
  };
};
