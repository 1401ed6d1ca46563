/**
 * Reads a request's body as far as its run needs. A small body is parsed whole. A large one is scanned into an outline, slice by
 * slice, so that other requests run in between and the objects of a 60 MB conversation are never created.
 *
 * An outline has everything that a request is recognised and routed by: model, options, and tools by their names. It leaves out the
 * conversation, schemas and descriptions, and replaces any text that is too long to be a name by a placeholder.
 */
import { Effect } from "effect";
import { scanInTurns } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { OutlineText } from "./OutlineText.ts";

/** Maximum size of a body that is parsed whole, in bytes. Parsing that much takes one or two milliseconds. */
export const wholeBytesMax = 256 * 1_024;

/**
 * Maximum size of an outline, in bytes. In a request that a provider would accept, everything but the conversation takes a few
 * kilobytes.
 */
export const outlineBytesMax = 256 * 1_024;

/** Maximum size of a string in an outline, in bytes. Names of models and tools, and ids, are shorter. */
export const textBytesMax = 16 * 1_024;

/** Maximum objects and lists of a large body that may still be parsed whole: as many as in 60 MB of one-kilobyte messages. */
export const partsMax = 100_000;

/** Members of the outermost object that hold the conversation, which does not help to recognise a request. */
export const conversation: ReadonlySet<string> = new Set([
  "messages",
  "input",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "system_instruction",
]);

/** Members, at any level, that describe a tool or a format and do not help to recognise a request. */
export const schemas: ReadonlySet<string> = new Set([
  "description",
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "input_schema",
  "responseJsonSchema",
  "responseSchema",
  "response_schema",
  "schema",
]);

const utf8 = new TextDecoder();

/** A body that was read, whole or as an outline. */
export interface KnownBody {
  /** The bytes without content encoding. */
  readonly plain: Bytes;
  /** The outermost object as parsed, or its outline. */
  readonly json: Json.JsonRecord;
  readonly isOutline: boolean;
  /** True if the body may be parsed whole when necessary, though that may take many milliseconds. */
  readonly mayBeParsed: boolean;
}

/**
 * The reason why a body could not be read. `not_an_object`: no model's API accepts it. `unread`: without its conversation, it still exceeds
 * an outline's limits.
 */
export type UnknownBody = "not_an_object" | "unread";

/** Reads a body without content encoding: whole if it is small, otherwise its outline. */
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

/** Creates the outline of a body, for a scan to fill. */
export const outlineOf = (bytes: Uint8Array): OutlineText =>
  new OutlineText(bytes, {
    bytesMax: outlineBytesMax,
    shouldOmit: (name, level) => (level === 1 && conversation.has(name)) || schemas.has(name),
    textMax: () => textBytesMax,
  });
