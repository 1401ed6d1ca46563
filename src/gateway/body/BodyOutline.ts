/**
 * Says what is known of a request's body before its run: a small one is parsed whole; of a large one an outline is made, slice by slice, so
 * that other requests have their turns meanwhile and the objects of a conversation of 60 MB are never made.
 *
 * An outline has everything that a request is recognised and routed by: model, options, tools by their names. It has no conversation, no
 * schema and no description, and of a text that is longer than any name it has a stand-in.
 */
import { Effect } from "effect";
import { scanned } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { OutlineText } from "./OutlineText.ts";

/** Longest body that is parsed whole, in bytes: that takes a millisecond or two. */
export const wholeBytesMax = 256 * 1_024;

/** Longest outline, in bytes: what stands beside the conversation in a request that a provider would take is a few kilobytes. */
export const outlineBytesMax = 256 * 1_024;

/** Longest text that an outline has, in bytes: no name of a model or a tool, and no id, is as long. */
export const textBytesMax = 16 * 1_024;

/** Most objects and lists of a body that is parsed whole: a conversation of 60 MB in messages of a kilobyte has as many. */
export const partsMax = 100_000;

/** Members of the outermost object that hold the conversation: nothing is recognised by what they say. */
export const conversation: ReadonlySet<string> = new Set([
  "messages",
  "input",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "system_instruction",
]);

/** Members that describe a tool or a format, at any level: nothing is recognised by what they say. */
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

/** What is known of a body. */
export interface KnownBody {
  /** Its bytes without content encoding. */
  readonly plain: Bytes;
  /** The outermost object, as it was parsed, or its outline. */
  readonly json: Json.JsonRecord;
  /** `json` is an outline. */
  readonly isOutline: boolean;
  /** It may be parsed whole where that has to be, though for many milliseconds. */
  readonly mayBeParsed: boolean;
}

/** A body that nothing is known of: `not_an_object` is of no model's API, and `unread` has more beside its conversation than is kept. */
export type UnknownBody = "not_an_object" | "unread";

/** Looks at a body. */
export const knownBody = (plain: Bytes): Effect.Effect<KnownBody | UnknownBody> =>
  Effect.suspend(() => {
    if (plain.byteLength > wholeBytesMax) return outlined(plain);
    const json = Json.record(Json.parse(utf8.decode(plain))?.json);
    return Effect.succeed(json === undefined ? "not_an_object" : { plain, json, isOutline: false, mayBeParsed: true });
  });

const outlined = (plain: Bytes): Effect.Effect<KnownBody | UnknownBody> => {
  const outline = outlineOf(plain);
  return Effect.map(scanned(plain, outline), (end) => {
    if (end === "done" || end === "deep" || outline.isFull) return "unread";
    const json = end === "json" ? Json.record(Json.parse(outline.text)?.json) : undefined;
    if (json === undefined) return "not_an_object";
    return { plain, json, isOutline: true, mayBeParsed: outline.parts <= partsMax };
  });
};

/** The outline of a body, for a scan to write. */
export const outlineOf = (bytes: Uint8Array): OutlineText =>
  new OutlineText(bytes, {
    bytesMax: outlineBytesMax,
    leavesOut: (name, level) => (level === 1 && conversation.has(name)) || schemas.has(name),
    textMax: () => textBytesMax,
  });
