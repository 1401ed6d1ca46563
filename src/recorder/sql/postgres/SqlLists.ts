/**
 * Passes the rows of a statement as one list per column (`unnest`). PostgreSQL then accepts any number of rows with the same statement text
 * and in one round trip.
 */

/** One list per column. */
export type Lists = ReadonlyArray<ReadonlyArray<string>>;

/**
 * Transposes rows to columns of text. A list has a single type, so an empty string represents a missing value.
 *
 * @param columns number of columns, needed if there is no row
 */
export const transpose = <A>(
  rows: ReadonlyArray<A>,
  columns: number,
  columnsOf: (row: A) => ReadonlyArray<string | number | null>,
): Lists => {
  const values = rows.map(columnsOf);
  return Array.from({ length: columns }, (_, column) => values.map((row) => String(row[column] ?? "")));
};
