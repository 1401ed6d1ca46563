/**
 * Compares the tables of a page before and after they are printed again, and stamps a table with its commit.
 */

/**
 * `exact`: every row must be the same. `verdicts`: the figures are times of this machine, so only the rows and their verdicts (`met`,
 * `missed`) must be the same, and a verdict may change if a bar lies within the spread that either play measured. `rows`: each printed
 * row must be in the page, which may have more.
 */
export type Comparison = "exact" | "verdicts" | "rows";

/**
 * Lists the differences between the tables of two texts, one line each: `-` for rows of the page, `+` for measured rows.
 *
 * @param before the page as it is committed
 * @param after the page or table of this play
 */
export const differences = (before: string, after: string, comparison: Comparison): ReadonlyArray<string> => {
  if (comparison === "verdicts") return verdictDifferences(rowsOf(before), rowsOf(after));
  const [said, measured] = [rowsOf(before), rowsOf(after)];
  const lacking = comparison === "rows" ? [] : said.filter((row) => !measured.includes(row));
  return [
    ...lacking.map((row) => `- ${row}`),
    ...measured.filter((row) => !said.includes(row)).map((row) => `+ ${row}`),
  ];
};

const rowsOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| ---"));

interface Measured {
  readonly name: string;
  readonly verdict: "met" | "missed" | undefined;
  /** True if the bar lies between the least and the greatest measured value, or within a tenth of a value without a spread. */
  readonly isUndecided: boolean;
}

const verdictDifferences = (said: ReadonlyArray<string>, measured: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [before, after] = [said.map(measuredOf), measured.map(measuredOf)];
  // Two groups may have rows of the same name: the nth of one page is compared with the nth of the other.
  const partnerOf = (row: Measured, rows: ReadonlyArray<Measured>, others: ReadonlyArray<Measured>) => {
    const nth = rows.filter(({ name }) => name === row.name).indexOf(row);
    return others.filter(({ name }) => name === row.name)[nth];
  };
  const agree = (row: Measured, other: Measured | undefined): boolean =>
    other !== undefined &&
    (row.verdict === other.verdict ||
      (row.verdict !== undefined && other.verdict !== undefined && (row.isUndecided || other.isUndecided)));
  const line = ({ name, verdict }: Measured) => (verdict === undefined ? name : `${name}: ${verdict}`);
  return [
    ...before.filter((row) => !agree(row, partnerOf(row, before, after))).map((row) => `- ${line(row)}`),
    ...after.filter((row) => !agree(row, partnerOf(row, after, before))).map((row) => `+ ${line(row)}`),
  ];
};

/** Reads a row of a bench: its name, the spread in its value (`7.2 ms (7.1–17.3)`), its bar (`≤ 10 ms`) and its verdict. */
const measuredOf = (row: string): Measured => {
  const [, named = "", value = "", bar = "", verdict] = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
  // A name may include a second measured value: "(54 µs in memory)".
  const name = named.replaceAll(/[\d.]+ (?=µs|ms)/g, "");
  const spread = /\((-?[\d.]+)–(-?[\d.]+)/.exec(value);
  const limit = Number(/[≤≥] ([\d.]+)/.exec(bar)?.[1] ?? Number.NaN);
  const single = Number(/^[+]?([\d.]+)/.exec(value)?.[1] ?? Number.NaN);
  const [least, greatest] = spread === null ? [single * 0.9, single * 1.1] : [Number(spread[1]), Number(spread[2])];
  return {
    name,
    verdict: verdict === "met" || verdict === "missed" ? verdict : undefined,
    isUndecided: least <= limit && limit <= greatest,
  };
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
export const stampPage = (page: string, marker: string, commit: string, date: string): string | undefined => {
  const at = page.indexOf(`${marker}\n`);
  if (at < 0) return undefined;
  const before = page.slice(0, at).replace(stamp, "");
  return `${before}Printed at commit \`${commit.slice(0, 12)}\` on ${date}.\n\n${page.slice(at)}`;
};
