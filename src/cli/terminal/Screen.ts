/**
 * Describes a command's output device: its width, its colours, the current time, and the command that started this program.
 */
import { basename } from "node:path";
import { Clock, Effect } from "effect";
import { type Ink, inkFor, plainInk } from "./Ink.ts";

/** Width of a terminal that does not report one. */
const columnsDefault = 80;

/** Minimum layout width, in columns. On a narrower terminal, the terminal itself breaks lines. */
const columnsMin = 60;

/** Maximum line width, in columns. Longer lines of prose are hard to read. */
export const columnsMax = 132;

/** A command's output device. */
export interface Screen {
  /** Width of a line of prose. */
  readonly columns: number;
  /** True if tables must fit into `columns`. A pipe receives every cell in full. */
  readonly fits: boolean;
  readonly ink: Ink;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /**
   * Builds the command that starts this program again with its store: `runs list` becomes `npx stream-recovery runs list --db
   * x.db`.
   */
  readonly type: (command: string) => string;
}

/**
 * Creates the screen of this process.
 *
 * @param db the `--db` value, which printed commands repeat
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
      type: commandFormatter(program(), db),
    };
  });

/**
 * Creates a screen without colours, for tests and for output that is not a terminal.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const plainScreen = (now: number, columns = columnsMax, fits = false): Screen => ({
  columns,
  fits,
  ink: plainInk,
  now,
  type: commandFormatter("npx stream-recovery", undefined),
});

const commandFormatter = (name: string, db: string | undefined) => (command: string) =>
  `${name} ${command}${db === undefined ? "" : ` --db ${quoteForShell(db)}`}`;

/** Quotes a word for a shell if necessary. */
export const quoteForShell = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** Returns the command that starts this program. In a checkout, npx finds the program and a recent enough Node. */
export const program = (): string =>
  basename(process.argv[1] ?? "") === "stream-recovery" ? "stream-recovery" : "npx stream-recovery";
