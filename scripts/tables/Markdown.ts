/**
 * Writes Markdown tables.
 */

/** A table; a `|` in a cell is escaped unless it is so already. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map(row).join("\n");

/** A word in code, or nothing where there is none. */
export const code = (word: string): string => (word === "" ? "" : `\`${word}\``);

const row = (cells: ReadonlyArray<string>): string =>
  `| ${cells.map((cell) => cell.replace(/(?<!\\)\|/g, "\\|")).join(" | ")} |`;
