/**
 * The file that moves runs between stores. It consists of JSON lines: a head line, one line per run, and a last line with the number of
 * runs, so that a truncated file is detected.
 *
 * It contains all the store's data including the key of its digests, and needs the same protection as the store. `IncidentExport` is the
 * format for sharing.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as Json from "../../domain/Json.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { RunRecord } from "../RunRecord.ts";
import { fieldMisfit } from "./FieldMisfit.ts";

/** Version of the file format, raised if a reader of the previous version would misread a file. */
export const fileVersion = 1;

const format = "stream-recovery-runs";

/** Maximum length of a line, in bytes. Even a record with full lists and the longest labels is shorter. */
export const fileLineBytesMax = 33_554_432;

/** Schema of the first line. */
export const FileHead = Schema.Struct({
  format: Schema.Literal(format),
  version: Schema.Literal(fileVersion),
  /** Wall clock at which the file was written, in milliseconds since the epoch. */
  at: Milliseconds,
  /** The key with which the digests of its runs were computed. */
  digest_key: Schema.String.check(Schema.isPattern(/^[\da-f]{64}$/)),
});
export type FileHead = typeof FileHead.Type;

/** Schema of the last line. */
export const FileEnd = Schema.Struct({
  end: Schema.Struct({
    /** Number of runs in the file. */
    runs: Schema.Natural,
    /** Number of runs left out because a process owned them. */
    left_out: Schema.Natural,
  }),
});
export type FileEnd = typeof FileEnd.Type;

const RunLine = Schema.Struct({ run: RunRecord });

/**
 * A file of runs cannot be read, or not completely. `not_runs`: the file has another format. `newer_format`: a newer version of this
 * package wrote the file. `bad_line`: the named field of a line is invalid. `cut`: the last line is missing or has the wrong number of
 * runs. `too_long`: a line is longer than `fileLineBytesMax`.
 */
export class RunFileError extends Schema.TaggedError<RunFileError>()("RunFileError", {
  reason: Schema.Literals(["not_runs", "newer_format", "bad_line", "cut", "too_long"]),
  /** Line number, from 1. */
  line: Schema.Natural,
  /** Path of the invalid field within its line; empty if the whole line is invalid. */
  field: Schema.String,
  message: Schema.String,
}) {}

/** A line after the first. */
export type FileLine =
  | { readonly _tag: "run"; readonly run: RunRecord }
  | { readonly _tag: "end"; readonly end: FileEnd["end"] };

/** Returns the first line, including its line break. */
export const headLine = (at: number, digestKey: string): string =>
  encodeLine({ format, version: fileVersion, at, digest_key: digestKey } satisfies FileHead);

/** Returns a run's line, including its line break. Records are plain data, so they need no encoding by the schema. */
export const runLine = (run: RunRecord): string => encodeLine({ run });

/** Returns the last line, including its line break. */
export const endLine = (end: FileEnd["end"]): string => encodeLine({ end } satisfies FileEnd);

const encodeLine = (value: object): string => `${JSON.stringify(value)}\n`;

// Refuses unknown fields. Otherwise fields that a newer version added to a record would be lost without notice.
const strict = { onExcessProperty: "error" } as const;
const readHead = Schema.decodeUnknownResult(FileHead, strict);
const readRun = Schema.decodeUnknownResult(RunLine, strict);
const readEnd = Schema.decodeUnknownResult(FileEnd, strict);

/** Parses the first line. */
export const parseHead = (text: string): Result.Result<FileHead, RunFileError> => {
  const document = Json.record(Json.parse(text)?.json);
  if (document?.format !== format) return fail("not_runs", 1, "", "this is not a file of `runs export --all`");
  if (Number(document.version) > fileVersion) {
    const versions = `its format is version ${Number(document.version)}, and this program knows version ${fileVersion}`;
    return fail("newer_format", 1, "version", `${versions}: update this program`);
  }
  return Result.mapError(readHead(document), (error) => lineError(1, error));
};

/** Parses a line after the first. */
export const parseLine = (number: number, text: string): Result.Result<FileLine, RunFileError> => {
  const json = Json.parse(text);
  if (json === undefined) return fail("bad_line", number, "", "expected JSON");
  if (Json.record(json.json)?.end !== undefined) {
    return Result.mapBoth(readEnd(json.json), {
      onSuccess: ({ end }): FileLine => ({ _tag: "end", end }),
      onFailure: (error) => lineError(number, error),
    });
  }
  return Result.mapBoth(readRun(json.json), {
    onSuccess: ({ run }): FileLine => ({ _tag: "run", run }),
    onFailure: (error) => lineError(number, error),
  });
};

const lineError = (line: number, { issue }: Schema.SchemaError): RunFileError => {
  const { expected, field } = fieldMisfit(issue);
  return fileError("bad_line", line, field.replace(/^\./, ""), expected);
};

const fail = (...given: Parameters<typeof fileError>): Result.Result<never, RunFileError> =>
  Result.fail(fileError(...given));

/** Returns an error that names the line and its invalid field. */
export const fileError = (reason: RunFileError["reason"], line: number, field: string, what: string): RunFileError =>
  new RunFileError({ reason, line, field, message: `line ${line}: ${field === "" ? "" : `${field}: `}${what}` });
