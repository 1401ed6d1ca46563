/**
 * Reads what the tests need of a Markdown file: fenced blocks, tables, links and headings.
 */

/** A fenced block. */
export interface Block {
  readonly language: string;
  /** What stands after the language: `run`, for one. */
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
 * The arguments of a bash that runs what a page tells to type. Without `--norc` it reads the machine's and its user's rc where its
 * stdin is a socket, as a pipe of Node is, and no shell stands above it: Debian's rc reads `PS1`, which is not set there.
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

/** Links of a file that do not leave the repository. What stands in blocks and in code is no link. */
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

/** The anchors that GitHub gives to the headings of a file, and those that stand in it as HTML. */
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
 * Whether a command printed what a block shows. A line `…` in the block stands for any lines, a `…` in a line for any text:
 * ports, times and ids differ from run to run.
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
