/**
 * Finds the printed sections of a page: everything between `<!-- printed: KIND WORD … -->` and `<!-- /printed -->`.
 */

/** Prints a section from the words after its kind. */
export type Printer = (words: ReadonlyArray<string>) => string | Promise<string>;

const section = /(<!-- printed: (\S+)((?: [^\s>]+)*) -->\n)([\s\S]*?)(<!-- \/printed -->)/g;

/** Lists the kinds of the sections of a page, in order. */
export const kindsOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(section)].map(([, , kind = ""]) => kind);

/**
 * Prints every section of a page again. Sections of a kind without a printer stay unchanged.
 *
 * @param page the current page
 * @param printers the printer of each kind
 */
export const printTables = async (page: string, printers: ReadonlyMap<string, Printer>): Promise<string> => {
  const texts: Array<string> = [];
  for (const [, , kind = "", words = "", before = ""] of page.matchAll(section)) {
    const text = await printers.get(kind)?.(words.split(" ").filter((word) => word !== ""));
    texts.push(text === undefined ? before : `${text}\n`);
  }
  return page.replace(
    section,
    (_, from: string, _kind, _words, _before, to: string) => `${from}${texts.shift() ?? ""}${to}`,
  );
};
