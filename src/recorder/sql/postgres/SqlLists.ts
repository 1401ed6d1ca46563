/**
 * Gives the rows of a statement as lists, one a column: PostgreSQL takes any number of rows by a statement of one text then
 * (`unnest`). Each statement is a way there and back.
 */

/** One list a column. */
export type Lists = ReadonlyArray<ReadonlyArray<string>>;

/**
 * The columns of rows, each as text: a list has one type, and an empty text stands for no value.
 *
 * @param columns how many there are, also where there is no row
 */
export const listsOf = <A>(
  rows: ReadonlyArray<A>,
  columns: number,
  columnsOf: (row: A) => ReadonlyArray<string | number | null>,
): Lists => {
  const values = rows.map(columnsOf);
  return Array.from({ length: columns }, (_, column) => values.map((row) => String(row[column] ?? "")));
};
