/**
 * Says what a command prints on: how wide it is, how it is coloured, what time it is, and how this program was started.
 */
import { basename } from "node:path";
import { Clock, Effect } from "effect";
import { type Ink, inkFor, plain } from "./Ink.ts";

/** Columns of a terminal that does not say how wide it is. */
const columnsDefault = 80;

/** Narrowest layout, in columns: below it lines break where the terminal breaks them. */
const columnsMin = 60;

/** Most characters of a line, in columns of the terminal: a longer line of prose is hard to read. */
export const columnsMax = 132;

/** What a command prints on. */
export interface Screen {
  /** Columns of a line of prose. */
  readonly columns: number;
  /** Whether a table must fit into `columns`: a pipe takes every cell whole. */
  readonly fits: boolean;
  readonly ink: Ink;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** What to type to start this program again, with its store: `runs list` becomes `npx stream-recovery runs list --db x.db`. */
  readonly type: (command: string) => string;
}

/**
 * The screen of this process.
 *
 * @param db the `--db` that was typed, which every command to type repeats
 */
export const make = (db?: string): Effect.Effect<Screen> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const { stdout } = process;
    const tty = stdout.isTTY === true;
    const columns = Math.min(columnsMax, Math.max(columnsMin, stdout.columns || columnsDefault));
    return {
      columns: tty ? columns : columnsMax,
      fits: tty,
      ink: inkFor(stdout),
      now,
      type: typing(program(), db),
    };
  });

/**
 * A screen that is no terminal.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const blank = (now: number, columns = columnsMax, fits = false): Screen => ({
  columns,
  fits,
  ink: plain,
  now,
  type: typing("npx stream-recovery", undefined),
});

const typing = (name: string, db: string | undefined) => (command: string) =>
  `${name} ${command}${db === undefined ? "" : ` --db ${quoted(db)}`}`;

/** A word for a shell: in single quotes where it is not plain. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** Installed it is a command; in a checkout npx finds it and a Node that is new enough. */
export const program = (): string =>
  basename(process.argv[1] ?? "") === "stream-recovery" ? "stream-recovery" : "npx stream-recovery";
