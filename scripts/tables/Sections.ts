/**
 * Finds what is printed in a page: everything between `<!-- printed: KIND WORD … -->` and `<!-- /printed -->`.
 */

/** What prints a kind of section from the words behind its name. */
export type Printer = (words: ReadonlyArray<string>) => string | Promise<string>;

const section = /(<!-- printed: (\S+)((?: [^\s>]+)*) -->\n)([\s\S]*?)(<!-- \/printed -->)/g;

/** The kinds of the sections of a page, in order. */
export const kindsOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(section)].map(([, , kind = ""]) => kind);

/**
 * A page with every section printed anew; sections of other kinds than those of `printers` stay.
 *
 * @param page the page as it is
 * @param printers what prints each kind
 */
export const printed = async (page: string, printers: ReadonlyMap<string, Printer>): Promise<string> => {
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
