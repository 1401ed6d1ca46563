/**
 * Parses as much of a request's body as its run needs. A small body is parsed completely. A large body is scanned into an outline, slice by
 * slice, so that other requests run in between and the objects of a 60 MB conversation are never created.
 *
 * An outline contains everything that identifies and routes a request: model, options, and tool names. It omits the conversation, schemas
 * and descriptions, and replaces strings that are too long for a name with a placeholder.
 */
import { Effect } from "effect";
import { scanInTurns } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { OutlineText } from "./OutlineText.ts";

/** Maximum size of a body that is parsed completely, in bytes. Parsing this size takes one or two milliseconds. */
export const wholeBytesMax = 256 * 1_024;

/** Maximum size of an outline, in bytes. In a request that a provider accepts, everything but the conversation takes a few kilobytes. */
export const outlineBytesMax = 256 * 1_024;

/** Maximum size of a string in an outline, in bytes. Model names, tool names and ids are shorter. */
export const textBytesMax = 16 * 1_024;

/**
 * Maximum number of objects and lists in a large body that may still be parsed completely. 60 MB of one-kilobyte messages have about as
 * many.
 */
export const partsMax = 100_000;

/** Members of the outermost object that contain the conversation. Recognising a request does not require them. */
export const conversation: ReadonlySet<string> = new Set([
  "messages",
  "input",
  "inputs",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "system_instruction",
  // Ollama's conversation of `/api/generate`, as tokens.
  "context",
]);

/** Members that contain the conversation if another object wraps the request, as Code Assist wraps a request of Gemini. */
export const wrapped: ReadonlySet<string> = new Set(["contents", "systemInstruction"]);

/** Members, at any level, that describe a tool or a format. Recognising a request does not require them. */
export const schemas: ReadonlySet<string> = new Set([
  "description",
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "input_schema",
  "inputSchema",
  "responseJsonSchema",
  "responseSchema",
  "response_schema",
  "schema",
]);

const utf8 = new TextDecoder();

/** A body after parsing, complete or as an outline. */
export interface KnownBody {
  /** The body after its content encoding was removed. */
  readonly plain: Bytes;
  /** The parsed outermost object, or its outline. */
  readonly json: Json.JsonRecord;
  readonly isOutline: boolean;
  /** True if the body may be parsed completely when necessary, even if that takes many milliseconds. */
  readonly mayBeParsed: boolean;
}

/**
 * The reason why a body could not be parsed. `not_an_object`: no model API accepts such a body. `unread`: even without the conversation,
 * the body exceeds the limits of an outline.
 */
export type UnknownBody = "not_an_object" | "unread";

/** Parses a body without content encoding: completely if it is small, otherwise as an outline. */
export const readKnownBody = (plain: Bytes): Effect.Effect<KnownBody | UnknownBody> =>
  Effect.suspend(() => {
    if (plain.byteLength > wholeBytesMax) return readOutline(plain);
    const json = Json.record(Json.parse(utf8.decode(plain))?.json);
    return Effect.succeed(json === undefined ? "not_an_object" : { plain, json, isOutline: false, mayBeParsed: true });
  });

const readOutline = (plain: Bytes): Effect.Effect<KnownBody | UnknownBody> => {
  const outline = outlineOf(plain);
  return Effect.map(scanInTurns(plain, outline), (end) => {
    if (end === "done" || end === "deep" || outline.isFull) return "unread";
    const json = end === "json" ? Json.record(Json.parse(outline.text)?.json) : undefined;
    if (json === undefined) return "not_an_object";
    return { plain, json, isOutline: true, mayBeParsed: outline.parts <= partsMax };
  });
};

/** Creates an empty outline of a body. A scan fills it. */
export const outlineOf = (bytes: Uint8Array): OutlineText =>
  new OutlineText(bytes, {
    bytesMax: outlineBytesMax,
    shouldOmit: (name, level) =>
      (level === 1 && conversation.has(name)) || (level === 2 && wrapped.has(name)) || schemas.has(name),
    textMax: () => textBytesMax,
  });
