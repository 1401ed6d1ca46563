/**
 * Reads a folder of recorded streams by its manifest.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Effect, Schema, SchemaIssue } from "effect";
import * as Json from "../../../domain/Json.ts";
import { Status } from "../../../domain/Limits.ts";
import { protocols } from "../../../provider/Protocols.ts";

/** Maximum size of a manifest, in bytes. A row takes about one kilobyte. */
export const manifestBytesMax = 256 * 1024 * 1024;

/** Maximum size of a recording, in bytes. */
export const recordingBytesMax = 64 * 1024 * 1024;

/** The folder cannot be played. The message is one line that names the field. */
export class RecordingsError extends Schema.TaggedError<RecordingsError>()("RecordingsError", {
  reason: Schema.Literals(["unreadable", "invalid", "unknown_name"]),
  message: Schema.String,
}) {}

const texts = Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])));

/** Schema of a manifest row. Other fields are ignored. */
export const Recording = Schema.Struct({
  /** Path relative to the folder. */
  file: Schema.NonEmptyString,
  protocol: Schema.Literals(protocols.ids),
  /** The recorded HTTP status. */
  status: Status.pipe(Schema.withDecodingDefaultKey(Effect.succeed(200))),
  response_headers: Schema.Record(Schema.String, Schema.Unknown).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed({})),
  ),
  bytes: Schema.optionalKey(Schema.Natural),
  sha256: Schema.optionalKey(Schema.String),
  features: texts,
  /** The finish reason, or one per choice. */
  finish: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.NullOr(Schema.String))]))),
  /** The terminal marker, if the recording has one. */
  terminal: Schema.optionalKey(Schema.NullOr(Schema.String)),
  tool_names: Schema.Array(Schema.NullOr(Schema.String)).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
});
/** A row of the manifest. */
export type Recording = typeof Recording.Type;

const Manifest = Schema.Struct({ streams: Schema.Array(Recording).check(Schema.isMinLength(1)) });

/** The selected recordings and their folder. */
export interface Recordings {
  readonly folder: string;
  readonly list: ReadonlyArray<Recording>;
}

/** Reads folders of recordings. */
export const Recordings = {
  /**
   * Reads a folder's manifest and checks that its files exist.
   *
   * @param folder path of a folder with a `manifest.json`
   * @param only parts of file names, or protocols; empty for all
   */
  read: Effect.fn("Recordings.read")(function* (folder: string, only: ReadonlyArray<string>) {
    const json = Json.parse(yield* manifestText(folder));
    if (json === undefined) return yield* invalidRecordings("manifest.json: not JSON");
    const manifest = yield* Effect.mapError(
      Schema.decodeUnknownEffect(Manifest)(json.json),
      (error) => new RecordingsError({ reason: "invalid", message: `manifest.json: ${oneLine(error)}` }),
    );
    for (const [index, { file }] of manifest.streams.entries()) {
      const size = yield* sizeOf(join(folder, file));
      if (size === undefined)
        return yield* invalidRecordings(`manifest.json: streams[${index}].file: no such file: ${file}`);
      if (size > recordingBytesMax) {
        return yield* invalidRecordings(
          `manifest.json: streams[${index}].file: longer than ${recordingBytesMax} bytes: ${file}`,
        );
      }
    }
    const asked = only.flatMap((value) => value.split(",")).filter((value) => value.trim() !== "");
    const list = manifest.streams.filter(
      (it) => asked.length === 0 || asked.some((value) => isMatch(it, value.trim())),
    );
    if (list.length === 0) {
      const message = `--only: no recording has "${asked.join('" or "')}" in its name`;
      return yield* new RecordingsError({ reason: "unknown_name", message });
    }
    return { folder, list } satisfies Recordings;
  }),
};

/**
 * Reads a recording's bytes.
 *
 * @returns the bytes, with a problem if they do not match the manifest
 */
export const bytesOf = (folder: string, recording: Recording) =>
  Effect.map(
    Effect.promise(() => readFile(join(folder, recording.file))),
    (bytes) => {
      const hash = createHash("sha256").update(bytes).digest("hex");
      const wrong =
        (recording.bytes !== undefined && recording.bytes !== bytes.byteLength) ||
        (recording.sha256 !== undefined && recording.sha256 !== hash);
      return { bytes, hash, problems: wrong ? ["the file does not match the manifest"] : [] };
    },
  );

const isMatch = ({ file, protocol }: Recording, asked: string): boolean => file.includes(asked) || protocol === asked;

const invalidRecordings = (message: string) => new RecordingsError({ reason: "invalid", message });

const manifestText = Effect.fnUntraced(function* (folder: string) {
  const path = join(folder, "manifest.json");
  const size = yield* sizeOf(path);
  if (size === undefined) {
    const message = (yield* isFolder(folder))
      ? `--streams: no manifest.json in ${folder}`
      : `--streams: no such folder: ${folder}`;
    return yield* new RecordingsError({ reason: "unreadable", message });
  }
  if (size > manifestBytesMax) return yield* invalidRecordings(`manifest.json: longer than ${manifestBytesMax} bytes`);
  return yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (cause) => new RecordingsError({ reason: "unreadable", message: `manifest.json: ${String(cause)}` }),
  });
});

/** Returns the size of a file in bytes; undefined if it is missing, unreadable or not a file. */
const sizeOf = (path: string): Effect.Effect<number | undefined> =>
  Effect.promise(() =>
    stat(path).then(
      (found) => (found.isFile() ? found.size : undefined),
      () => undefined,
    ),
  );

const isFolder = (path: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    ),
  );

const issues = SchemaIssue.makeFormatterStandardSchemaV1();

/** Formats the first issue only: `streams[3].protocol: Expected …`. */
const oneLine = (error: Schema.SchemaError): string => {
  const issue = issues(error.issue).issues[0];
  const field = (issue?.path ?? [])
    .map((step) => (typeof step === "object" ? step.key : step))
    .reduce<string>((path, key) => (typeof key === "number" ? `${path}[${key}]` : `${path}.${String(key)}`), "");
  const problem = (issue?.message ?? error.message).replace(/\s*\n\s*/g, " ");
  return field === "" ? problem : `${field.replace(/^\./, "")}: ${problem}`;
};
