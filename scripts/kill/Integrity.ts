/**
 * Checks the integrity of an SQLite file.
 */
import { DatabaseSync } from "node:sqlite";
import { Schema } from "effect";

const decode = Schema.decodeUnknownSync(Schema.Struct({ integrity_check: Schema.String }));

/** Returns the first row of `PRAGMA integrity_check`: `ok` if the file is intact. */
export const integrityOf = (file: string): string => {
  const database = new DatabaseSync(file);
  try {
    const [row] = database.prepare("PRAGMA integrity_check").all();
    return decode(row).integrity_check;
  } finally {
    database.close();
  }
};
