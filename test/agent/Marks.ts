/**
 * Reads the marks that a tool has made.
 */
import { existsSync, readFileSync } from "node:fs";

/** The lines of a file; none where it is not there. */
export const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
