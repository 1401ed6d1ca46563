/** Formats rows in columns that fit the terminal. The widest cells of shrinkable columns are cut, with an ellipsis. */
import type { Ink, Tone } from "./Ink.ts";

/** A column of the table. */
export interface Column {
  readonly head: string;
  readonly align?: "right";
  /** Minimum width, in characters. A column without it is never cut. */
  readonly shrinksTo?: number;
  /** True to cut this column first, directly to `shrinksTo` and without an ellipsis, so that the remaining prefix of an id can be typed. */
  readonly typed?: true;
}

/** The text of a cell and its tone. */
export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
}

const gap = "  ";

/**
 * Formats a table with its header.
 *
 * @param columns the columns, left to right
 * @param rows one cell per column
 * @param ink colours; cells are padded before they are coloured, because colour codes have no width
 * @param width maximum characters per line; undefined for no limit
 */
export const formatTable = (
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  ink: Ink,
  width: number | undefined,
): string => {
  const natural = columns.map((column, index) =>
    Math.max(column.head.length, ...rows.map((row) => lengthOf(row[index]?.text ?? ""))),
  );
  const widths = width === undefined ? natural : shrinkColumns(columns, natural, width);
  const lineOf = (cells: ReadonlyArray<Cell>): string =>
    columns
      .map((column, index) => {
        const { text, tone } = cells[index] ?? { text: "" };
        const width = widths[index] ?? 0;
        const laid = pad(column.typed === true ? text.slice(0, width) : cut(text, width), width, column.align);
        return tone === undefined ? laid : ink(tone, laid);
      })
      .join(gap)
      .trimEnd();
  return [columns.map(({ head }): Cell => ({ text: head, tone: "quiet" })), ...rows].map(lineOf).join("\n");
};

/** Cuts typed columns first, then takes one character at a time from the widest shrinkable column. */
const shrinkColumns = (
  columns: ReadonlyArray<Column>,
  natural: ReadonlyArray<number>,
  width: number,
): ReadonlyArray<number> => {
  const widths = [...natural];
  let over = widths.reduce((sum, it) => sum + it, gap.length * (columns.length - 1)) - width;
  for (const [index, { shrinksTo, typed }] of columns.entries()) {
    if (over <= 0 || typed !== true || shrinksTo === undefined) continue;
    const given = Math.max(0, (widths[index] ?? 0) - shrinksTo);
    widths[index] = (widths[index] ?? 0) - given;
    over -= given;
  }
  for (; over > 0; over -= 1) {
    const candidates = columns.flatMap(({ shrinksTo }, index) =>
      shrinksTo !== undefined && (widths[index] ?? 0) > shrinksTo ? [index] : [],
    );
    const widest = candidates.reduce<number | undefined>(
      (best, index) => (best === undefined || (widths[index] ?? 0) > (widths[best] ?? 0) ? index : best),
      undefined,
    );
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
};

const lengthOf = (text: string): number => [...text].length;

/**
 * Cuts text to a maximum length.
 *
 * @param most maximum characters, at least 1; longer text ends with an ellipsis
 */
export const cut = (text: string, most: number): string => {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, Math.max(0, most - 1)).join("")}…`;
};

const pad = (text: string, width: number, align: Column["align"]): string => {
  const room = " ".repeat(Math.max(0, width - lengthOf(text)));
  return align === "right" ? room + text : text + room;
};
