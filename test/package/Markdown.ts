/**
 * Parses the parts of a Markdown file that the tests need: fenced blocks, tables, links and headings.
 */

/** A fenced block. */
export interface Block {
  readonly language: string;
  /** The words after the language, for example `run`. */
  readonly marks: ReadonlyArray<string>;
  readonly text: string;
  /** The line of its first line of text. */
  readonly line: number;
}

export interface Link {
  /** Without the anchor; empty for a place in the same file. */
  readonly path: string;
  readonly anchor: string | undefined;
  readonly line: number;
}

/**
 * The arguments of a bash that runs a page's commands. Without `--norc` bash reads the machine's and its user's rc if its stdin is a
 * socket, as Node's pipes are, and it has no parent shell. Debian's rc then reads the unset `PS1`.
 */
export const shellOf = (commands: string): ReadonlyArray<string> => ["--norc", "-euo", "pipefail", "-c", commands];

/** The fenced blocks, in their order. */
export const blocks = (markdown: string): ReadonlyArray<Block> => {
  const found: Array<Block> = [];
  let open: { readonly words: ReadonlyArray<string>; readonly line: number; readonly lines: Array<string> } | undefined;
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(line)?.[1]?.trim();
    if (open === undefined) {
      if (fence !== undefined) open = { words: fence.split(/\s+/), line: index + 2, lines: [] };
    } else if (fence === "") {
      const [language = "", ...marks] = open.words;
      found.push({ language, marks, text: `${open.lines.join("\n")}\n`, line: open.line });
      open = undefined;
    } else {
      open.lines.push(line);
    }
  }
  return found;
};

/** Links of a file that do not leave the repository. Links in blocks and in code do not count. */
export const relativeLinks = (markdown: string): ReadonlyArray<Link> =>
  prose(markdown)
    .split("\n")
    .flatMap((line, index) =>
      [
        ...line.matchAll(
          /\]\(<?([^()\s>]*(?:\([^()\s]*\))?[^()\s>]*)>?(?:\s+"[^"]*")?\)|<(?:img|a)\b[^>]*?(?:src|href)="([^"]+)"/g,
        ),
      ]
        .map((match) => match[1] ?? match[2] ?? "")
        .filter((target) => target !== "" && !/^[a-z][a-z0-9+.-]*:/i.test(target))
        .map((target) => {
          const [path = "", anchor] = target.split("#");
          return { path: decodeURIComponent(path), anchor, line: index + 1 };
        }),
    );

/** The anchors that GitHub gives to the headings of a file, and those written as HTML. */
export const anchors = (markdown: string): ReadonlySet<string> => {
  const given = new Set<string>();
  for (const [, heading = ""] of prose(markdown, false).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-");
    let unique = slug;
    for (let copy = 1; given.has(unique); copy += 1) unique = `${slug}-${copy}`;
    given.add(unique);
  }
  for (const [, id = ""] of markdown.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) given.add(id);
  return given;
};

/** The file without its blocks, and without code in lines unless it is wanted; lines keep their numbers. */
const prose = (markdown: string, withoutCode = true): string => {
  const text = markdown.replace(/^```[\s\S]*?^```\s*$/gm, (block) => block.replace(/[^\n]/g, ""));
  return withoutCode ? text.replace(/`[^`\n]*`/g, "") : text;
};

/**
 * Returns true if a command printed the output that a block shows. A line `…` in the block matches any lines, and a `…` within a line
 * any text, because ports, times and ids differ between runs.
 */
export const shows = (block: string, printed: string): boolean => {
  const lines = block.trimEnd().split("\n");
  const pattern = lines
    .map((line, index) => {
      if (line.trim() === "…") return "(?:[^\\n]*\\n)*";
      const escaped = line
        .trimEnd()
        .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
        .replaceAll("…", "[^\\n]*");
      return `${escaped}[ \\t]*${index === lines.length - 1 ? "\\n*" : "\\n"}`;
    })
    .join("");
  return new RegExp(`^${pattern}$`).test(`${printed.trimEnd()}\n`);
};
