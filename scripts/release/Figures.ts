/**
 * Compares the tables of a page before and after they are printed again, and stamps a table with its commit.
 */

/**
 * `exact`: every row must be the same. `verdicts`: the figures are times of this machine, so that only the rows and their verdicts
 * (`met`, `missed`) must be the same. `rows`: each row that was printed must stand in the page, which has others.
 */
export type Comparison = "exact" | "verdicts" | "rows";

/**
 * Lists the differences between the tables of two texts, one line each: `-` for what the page says, `+` for what was measured.
 *
 * @param before the page as it is committed
 * @param after the page or table of this play
 */
export const differences = (before: string, after: string, comparison: Comparison): ReadonlyArray<string> => {
  const [said, measured] = [figuresOf(before, comparison), figuresOf(after, comparison)];
  const lacking = comparison === "rows" ? [] : said.filter((row) => !measured.includes(row));
  return [
    ...lacking.map((row) => `- ${row}`),
    ...measured.filter((row) => !said.includes(row)).map((row) => `+ ${row}`),
  ];
};

const figuresOf = (text: string, comparison: Comparison): ReadonlyArray<string> =>
  text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| ---"))
    .map((line) => (comparison === "verdicts" ? verdictOf(line) : line));

/** The name of a row and its verdict, if it has a bar. */
const verdictOf = (row: string): string => {
  const cells = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
  const verdict = cells.find((cell) => cell === "met" || cell === "missed");
  return verdict === undefined ? (cells[1] ?? "") : `${cells[1]}: ${verdict}`;
};

const stamp = /Printed at commit `[0-9a-f]{12}` on \d{4}-\d\d-\d\d\.\n\n$/;

/**
 * Puts the commit and the date above a printed table.
 *
 * @param marker the comment that starts the table, for example `<!-- matrix -->`
 * @param commit at least twelve hexadecimal digits
 * @param date `YYYY-MM-DD`
 * @returns undefined if the page has no such marker
 */
export const stamped = (page: string, marker: string, commit: string, date: string): string | undefined => {
  const at = page.indexOf(`${marker}\n`);
  if (at < 0) return undefined;
  const before = page.slice(0, at).replace(stamp, "");
  return `${before}Printed at commit \`${commit.slice(0, 12)}\` on ${date}.\n\n${page.slice(at)}`;
};
