/**
 * Describes the file that moves runs from store to store: JSON lines, a first one that says what it is, a run a line, and a last
 * one that counts them, so that a file that was cut is known by its end.
 *
 * It holds what the store holds, the store's key for digests with it, and is to be kept as the store is. What may leave the house
 * is `IncidentExport`.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as Json from "../../domain/Json.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { RunRecord } from "../RunRecord.ts";
import { fieldMisfit } from "./FieldMisfit.ts";

/** Raised when a reader of the version before would misread a file. */
export const fileVersion = 1;

const format = "stream-recovery-runs";

/** Longest line, in bytes: a record whose every list is full, with the longest labels, takes less. */
export const fileLineBytesMax = 33_554_432;

/** The first line. */
export const FileHead = Schema.Struct({
  format: Schema.Literal(format),
  version: Schema.Literal(fileVersion),
  /** When it was written; wall clock, milliseconds since the epoch. */
  at: Milliseconds,
  /** The key that the digests of its runs are made with. */
  digest_key: Schema.String.check(Schema.isPattern(/^[\da-f]{64}$/)),
});
export type FileHead = typeof FileHead.Type;

/** The last line. */
export const FileEnd = Schema.Struct({
  end: Schema.Struct({
    /** Runs in the file. */
    runs: Schema.Natural,
    /** Runs that a process drove, which the file does not have. */
    left_out: Schema.Natural,
  }),
});
export type FileEnd = typeof FileEnd.Type;

const RunLine = Schema.Struct({ run: RunRecord });

/**
 * A file of runs cannot be taken, or not to its end. `not_runs`: it is none. `newer_format`: a newer version of this package wrote
 * it. `bad_line`: the named field of a line is not what it has to be. `cut`: its last line is missing, or counts other runs than
 * there are. `too_long`: a line is longer than `fileLineBytesMax`.
 */
export class RunFileError extends Schema.TaggedError<RunFileError>()("RunFileError", {
  reason: Schema.Literals(["not_runs", "newer_format", "bad_line", "cut", "too_long"]),
  /** From 1. */
  line: Schema.Natural,
  /** The field that misfits, as a path into its line; empty where the whole line does. */
  field: Schema.String,
  message: Schema.String,
}) {}

/** A line of a file. */
export type FileLine =
  | { readonly _tag: "run"; readonly run: RunRecord }
  | { readonly _tag: "end"; readonly end: FileEnd["end"] };

/** The text of the first line, with its line break. */
export const headLine = (at: number, digestKey: string): string =>
  lineOf({ format, version: fileVersion, at, digest_key: digestKey } satisfies FileHead);

/** The text of a run's line, with its line break. Records are plain data: what the schema would encode to is what they are. */
export const runLine = (run: RunRecord): string => lineOf({ run });

/** The text of the last line, with its line break. */
export const endLine = (end: FileEnd["end"]): string => lineOf({ end } satisfies FileEnd);

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

// What a newer version has added to a record would be lost without a word.
const strict = { onExcessProperty: "error" } as const;
const readHead = Schema.decodeUnknownResult(FileHead, strict);
const readRun = Schema.decodeUnknownResult(RunLine, strict);
const readEnd = Schema.decodeUnknownResult(FileEnd, strict);

/** Reads the first line. */
export const parseHead = (text: string): Result.Result<FileHead, RunFileError> => {
  const document = Json.record(Json.parse(text)?.json);
  if (document?.format !== format) return refused("not_runs", 1, "", "this is no file of `runs export --all`");
  if (Number(document.version) > fileVersion) {
    const versions = `its format is version ${Number(document.version)}, and this program knows version ${fileVersion}`;
    return refused("newer_format", 1, "version", `${versions}: update this program`);
  }
  return Result.mapError(readHead(document), (error) => misfit(1, error));
};

/** Reads a line behind the first. */
export const parseLine = (number: number, text: string): Result.Result<FileLine, RunFileError> => {
  const json = Json.parse(text);
  if (json === undefined) return refused("bad_line", number, "", "expected JSON");
  if (Json.record(json.json)?.end !== undefined) {
    return Result.mapBoth(readEnd(json.json), {
      onSuccess: ({ end }): FileLine => ({ _tag: "end", end }),
      onFailure: (error) => misfit(number, error),
    });
  }
  return Result.mapBoth(readRun(json.json), {
    onSuccess: ({ run }): FileLine => ({ _tag: "run", run }),
    onFailure: (error) => misfit(number, error),
  });
};

const misfit = (line: number, { issue }: Schema.SchemaError): RunFileError => {
  const { expected, field } = fieldMisfit(issue);
  return fileError("bad_line", line, field.replace(/^\./, ""), expected);
};

const refused = (...given: Parameters<typeof fileError>): Result.Result<never, RunFileError> =>
  Result.fail(fileError(...given));

/** Says what is wrong with a line, and in which of its fields. */
export const fileError = (reason: RunFileError["reason"], line: number, field: string, what: string): RunFileError =>
  new RunFileError({ reason, line, field, message: `line ${line}: ${field === "" ? "" : `${field}: `}${what}` });
