/**
 * Holds the files that outlive a killed process: what its user saw, and the marks that its tool really made.
 */
import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Schema } from "effect";

/** One line of a run's diary: written before the runtime does anything else with the event. */
export const Line = Schema.Union([
  Schema.Struct({ saw: Schema.Literals(["attempt", "text", "call"]), attempt: Schema.Natural }),
  Schema.Struct({ discard: Schema.Natural, keep: Schema.Natural }),
  Schema.Struct({ end: Schema.String }),
]);
export type Line = typeof Line.Type;

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Line));

const diaryOf = (folder: string, run: string): string => join(folder, `${run}.diary`);
const marksOf = (folder: string, run: string): string => join(folder, `${run}.marks`);

/** Writes a line, in one write: a killed process leaves it whole or not at all. */
export const note = (folder: string, run: string, line: Line): void =>
  appendFileSync(diaryOf(folder, run), `${JSON.stringify(line)}\n`);

/** Everything that the run's user saw, in order, over all its processes. */
export const diary = (folder: string, run: string): ReadonlyArray<Line> =>
  linesOf(diaryOf(folder, run)).map((it) => decode(it));

/** Makes a mark of the tool: `start` or `done`. */
export const mark = (folder: string, run: string, what: "start" | "done"): void =>
  appendFileSync(marksOf(folder, run), `${what}\n`);

/** The marks that the tool has made. */
export const marks = (folder: string, run: string): ReadonlyArray<string> => linesOf(marksOf(folder, run));

/** When the tool has made its last mark, in milliseconds since the epoch; 0 where it made none. */
export const markedAt = (folder: string, run: string): number =>
  statSync(marksOf(folder, run), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
