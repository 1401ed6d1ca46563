/**
 * The files that survive a killed process: what the user of a run saw, and the marks that its tool actually made.
 */
import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Schema } from "effect";

/** One line of a run's diary. It is written before the runtime processes the event further. */
export const Line = Schema.Union([
  Schema.Struct({ saw: Schema.Literals(["attempt", "text", "call"]), attempt: Schema.Natural }),
  Schema.Struct({ discard: Schema.Natural, keep: Schema.Natural }),
  Schema.Struct({ end: Schema.String }),
]);
export type Line = typeof Line.Type;

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Line));

const diaryOf = (folder: string, run: string): string => join(folder, `${run}.diary`);
const marksOf = (folder: string, run: string): string => join(folder, `${run}.marks`);

/** Appends a line in a single write, so a killed process leaves it complete or not at all. */
export const note = (folder: string, run: string, line: Line): void =>
  appendFileSync(diaryOf(folder, run), `${JSON.stringify(line)}\n`);

/** Reads everything that the run's user saw, in order, across all its processes. */
export const diary = (folder: string, run: string): ReadonlyArray<Line> =>
  linesOf(diaryOf(folder, run)).map((it) => decode(it));

/** Appends a mark of the tool: `start` or `done`. */
export const mark = (folder: string, run: string, what: "start" | "done"): void =>
  appendFileSync(marksOf(folder, run), `${what}\n`);

/** Reads the marks of the tool. */
export const marks = (folder: string, run: string): ReadonlyArray<string> => linesOf(marksOf(folder, run));

/** The time of the tool's last mark, in milliseconds since the epoch; 0 if there is none. */
export const markedAt = (folder: string, run: string): number =>
  statSync(marksOf(folder, run), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
