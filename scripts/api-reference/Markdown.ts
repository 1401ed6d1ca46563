/**
 * The API reference as Markdown.
 */
import { posix } from "node:path";
import { markdown, sentence } from "./Docstring.ts";
import type { Page } from "./Page.ts";
import { type Chapter, type Entry, flatten } from "./Reference.ts";

const index = "docs/api.md";
const written = "Written from the sources and their docstrings when the package was packed.";

/** Creates every file of the reference, by its path from the root of the repository. */
export const files = (chapters: ReadonlyArray<Chapter>): ReadonlyMap<string, string> => {
  const anchors = new Map(chapters.map(({ entries, page }) => [page, anchorsOf(entries)]));
  return new Map([
    [index, overview(chapters, anchors)],
    ...chapters.map((chapter) => [chapter.page.file, pageOf(chapter, anchors)] as const),
  ]);
};

type Anchors = ReadonlyMap<Page, ReadonlyMap<string, string>>;

/** The anchors that GitHub assigns to the headings, by name. */
const anchorsOf = (entries: ReadonlyArray<Entry>): ReadonlyMap<string, string> => {
  const given = new Map<string, string>();
  const taken = new Set<string>();
  for (const { name } of flatten(entries)) {
    const slug = name.toLowerCase().replaceAll(".", "");
    let unique = slug;
    for (let copy = 1; taken.has(unique); copy += 1) unique = `${slug}-${copy}`;
    taken.add(unique);
    given.set(name, unique);
  }
  return given;
};

const overview = (chapters: ReadonlyArray<Chapter>, anchors: Anchors): string =>
  lines([
    "# API reference",
    `Every export of every entry point: the main ones first, the others in the order of the source. ${written}`,
    ...chapters.flatMap(({ docstring, entries, page }) => {
      const path = posix.relative(posix.dirname(index), page.file);
      const names = entries.map(({ name }) => `[\`${name}\`](${path}#${anchors.get(page)?.get(name) ?? ""})`);
      return [`## [\`${page.specifier}\`](${path})`, sentence(docstring), names.join(" · ")];
    }),
  ]);

const pageOf = ({ docstring, entries, page }: Chapter, anchors: Anchors): string =>
  lines([
    `# \`${page.specifier}\``,
    docstring.text,
    `${written} [All entry points](${relative(page, index)}).`,
    ["| export | |", "| --- | --- |", ...entries.map((entry) => row(entry, page, anchors))].join("\n"),
    ...entries.flatMap((entry) => section(entry, page, anchors)),
  ]);

const row = (entry: Entry, page: Page, anchors: Anchors): string => {
  const anchor = anchors.get(page)?.get(entry.name) ?? "";
  return `| [\`${entry.name}\`](#${anchor}) | ${sentence(entry.docstring).replaceAll("|", "\\|")} |`;
};

const section = (entry: Entry, page: Page, anchors: Anchors, level = 2): ReadonlyArray<string> => {
  const heading = `${"#".repeat(level)} ${entry.name}`;
  if (entry.same !== undefined) return [heading, linkToSame(entry.same, page, anchors)];
  // The package contains no sources, so this is no link.
  const source = `\`${entry.source}\``;
  if (entry.signature === "" && entry.members.length > 0)
    return [
      heading,
      entry.docstring.text,
      `A module: ${source}`,
      ...entry.members.flatMap((member) => section(member, page, anchors, level + 1)),
    ];
  const place = level === 2 ? [source] : [];
  return [
    heading,
    `\`\`\`ts\n${entry.signature}\n\`\`\``,
    markdown(entry.docstring),
    ...place,
    ...entry.members.flatMap((member) => section(member, page, anchors, level + 1)),
  ];
};

const linkToSame = (same: NonNullable<Entry["same"]>, page: Page, anchors: Anchors): string => {
  const anchor = `#${anchors.get(same.page)?.get(same.name) ?? ""}`;
  return same.page === page
    ? `The same as [\`${same.name}\`](${anchor}).`
    : `The same as [\`${same.name}\`](${relative(page, same.page.file)}${anchor}) of \`${same.page.specifier}\`.`;
};

const relative = (page: Page, path: string): string => posix.relative(posix.dirname(page.file), path);

const lines = (paragraphs: ReadonlyArray<string>): string =>
  `${paragraphs.filter((paragraph) => paragraph !== "").join("\n\n")}\n`;
