/**
 * Checks before a write that its entries can be read back, using the schema that reads them.
 *
 * A record is built from its entries and contains nothing else, so if each entry can be read, the record can be read too.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { label } from "../../../domain/Limits.ts";
import { invalidEntryError, type RecorderError } from "../../RecorderError.ts";
import * as RunRecord from "../../RunRecord.ts";
import { fieldMisfit } from "../../transfer/FieldMisfit.ts";
import { shapeOf } from "./SqlEntryShape.ts";

/** Accepts an entry only if its type and all its values match the schema. */
const isEntry = shapeOf(RunRecord.Entry);
const read = Schema.decodeUnknownResult(RunRecord.Entry);

/**
 * Returns entries as they will be read back.
 *
 * @returns the entries themselves if they match their types; otherwise their JSON round trip, because an undefined value would make the
 *   record unreadable. An error names the first field that still does not match
 */
export const normalizeEntries = (
  runId: string,
  entries: ReadonlyArray<RunRecord.Entry>,
): ReadonlyArray<RunRecord.Entry> | RecorderError => {
  if (entries.every(isEntry)) return entries;
  const all: Array<RunRecord.Entry> = [];
  for (const [index, entry] of entries.entries()) {
    const found = isEntry(entry) ? Result.succeed(entry) : readBack(entry);
    if (Result.isFailure(found)) return invalidEntryError(runId, index, `${nameOf(entry)}${found.failure}`);
    all.push(found.success);
  }
  return all;
};

/** Returns the name of an entry for messages. An untyped program may pass a value that is not an entry. */
const nameOf = (entry: RunRecord.Entry | null | undefined): string => label(String(entry?._tag ?? "entry"));

/** Writes and reads an entry as the store does. JSON drops undefined fields and turns non-finite numbers into null. */
const readBack = (entry: RunRecord.Entry): Result.Result<RunRecord.Entry, string> =>
  Result.flatMap(
    Result.try({ try: (): unknown => JSON.parse(JSON.stringify(entry)), catch: () => ": expected plain data" }),
    (json) =>
      Result.mapError(read(json), ({ issue }) => {
        const { expected, field } = fieldMisfit(issue);
        return `${field}: ${expected}`;
      }),
  );
