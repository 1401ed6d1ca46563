/**
 * Checks that entries could be read back before they are written. They are plain data, and the schema that reads them judges.
 *
 * A record is a fold over its entries, and holds nothing that they do not hold: where each entry can be read, so can the
 * record.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { label } from "../../../domain/Limits.ts";
import { invalid, type RecorderError } from "../../RecorderError.ts";
import * as RunRecord from "../../RunRecord.ts";
import { fieldMisfit } from "../../transfer/FieldMisfit.ts";
import { shapeOf } from "./SqlEntryShape.ts";

/** As a plain question: an entry of the right type may hold a value that its schema refuses. */
const isEntry = shapeOf(RunRecord.Entry);
const read = Schema.decodeUnknownResult(RunRecord.Entry);

/**
 * Gives entries as they will be read.
 *
 * @returns the entries themselves where they are what their types say; read back where JSON makes them so, for a fold over
 *   a value that is undefined makes one that cannot be read. Otherwise an error that names the first field that misfits
 */
export const readable = (
  runId: string,
  entries: ReadonlyArray<RunRecord.Entry>,
): ReadonlyArray<RunRecord.Entry> | RecorderError => {
  if (entries.every(isEntry)) return entries;
  const all: Array<RunRecord.Entry> = [];
  for (const [index, entry] of entries.entries()) {
    const found = isEntry(entry) ? Result.succeed(entry) : readBack(entry);
    if (Result.isFailure(found)) return invalid(runId, index, `${nameOf(entry)}${found.failure}`);
    all.push(found.success);
  }
  return all;
};

/** A program without types may hand over something that is no entry. */
const nameOf = (entry: RunRecord.Entry | null | undefined): string => label(String(entry?._tag ?? "entry"));

/** Written and read as the store does it: JSON leaves out what is undefined, and makes null of what is no finite number. */
const readBack = (entry: RunRecord.Entry): Result.Result<RunRecord.Entry, string> =>
  Result.flatMap(
    Result.try({ try: (): unknown => JSON.parse(JSON.stringify(entry)), catch: () => ": expected plain data" }),
    (json) =>
      Result.mapError(read(json), ({ issue }) => {
        const { expected, field } = fieldMisfit(issue);
        return `${field}: ${expected}`;
      }),
  );
