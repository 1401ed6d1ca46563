/**
 * Asks SQLite whether a file is whole.
 */
import { DatabaseSync } from "node:sqlite";
import { Schema } from "effect";

const decode = Schema.decodeUnknownSync(Schema.Struct({ integrity_check: Schema.String }));

/** What SQLite says of the file: `ok` where it is whole. */
export const integrityOf = (file: string): string => {
  const database = new DatabaseSync(file);
  try {
    const [row] = database.prepare("PRAGMA integrity_check").all();
    return decode(row).integrity_check;
  } finally {
    database.close();
  }
};
