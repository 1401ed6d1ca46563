/**
 * Writes Markdown tables.
 */

/** Formats a table. An unescaped `|` in a cell is escaped. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map(row).join("\n");

/** Formats a word as code; an empty word stays empty. */
export const code = (word: string): string => (word === "" ? "" : `\`${word}\``);

const row = (cells: ReadonlyArray<string>): string =>
  `| ${cells.map((cell) => cell.replace(/(?<!\\)\|/g, "\\|")).join(" | ")} |`;
