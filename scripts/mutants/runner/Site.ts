/**
 * Finds the place of a mutant by its text and its declaration, so that moved files do not break it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "../Mutant.ts";

/** A source file: its path from the root of the repository, and its text. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

/** The file that a mutant changes, before and after the change. */
export interface Site {
  readonly path: string;
  readonly original: string;
  readonly mutated: string;
}

/** Reads all sources of `src`. */
export const sources = (root: string): ReadonlyArray<SourceText> =>
  readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => ({ path: join("src", path), text: readFileSync(join(root, "src", path), "utf8") }));

/** Finds the place of a mutant's text. Returns a string with the problem if the mutant is invalid. */
export const siteOf = (
  { find, replace, within }: Pick<Mutant, "find" | "replace" | "within">,
  all: ReadonlyArray<SourceText>,
): Site | string => {
  if (find === "") return "find: expected some text, got none";
  if (find === replace) return "replace: expected a text other than find";
  const found = all.flatMap((source) => occurrences(source.text, find).map((at) => ({ ...source, at })));
  const [only] = found;
  if (only === undefined) return "find: its text occurs nowhere in src";
  if (found.length > 1)
    return `find: its text occurs ${found.length} times: ${found.map(({ path }) => path).join(", ")}`;
  const { at, path, text } = only;
  const names = declarationsAround(text, at, at + find.length);
  if (!names.includes(within)) return `within: ${path} has the text in ${names.join(", ") || "no declaration"}`;
  return { path, original: text, mutated: text.slice(0, at) + replace + text.slice(at + find.length) };
};

const occurrences = (text: string, part: string): ReadonlyArray<number> => {
  const at: Array<number> = [];
  for (let from = text.indexOf(part); from >= 0; from = text.indexOf(part, from + 1)) at.push(from);
  return at;
};

const modifiers = /^(?:(?:export|default|declare|abstract|async|static|readonly|override|private|get|set)\s+)*/;
const declared = /^(?:const|let|function\*?|class|interface|type)\s+([\w$]+)/;
const member = /^(#?[\w$]+)\??\s*(?:=|:|\(|<)/;

/** The name that a line declares. */
const nameOn = (line: string): string | undefined => {
  const rest = line.trimStart().replace(modifiers, "");
  return declared.exec(rest)?.[1] ?? member.exec(rest)?.[1];
};

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Closing brackets and comments do not show which declaration encloses a line. */
const transparent = /^\s*(?:[)\]}]|\/\/|\/?\*|$)/;

/**
 * The declarations around a span of text, from the inside out, and those on its own lines. The sources are formatted, so the enclosing
 * declaration of a line is above it with a smaller indent.
 */
export const declarationsAround = (text: string, from: number, to: number): ReadonlyArray<string> => {
  const before = text.slice(0, from).split("\n");
  const lines = text.split("\n");
  const first = before.length - 1;
  const last = text.slice(0, to).trimEnd().split("\n").length - 1;
  const names = lines.slice(first, last + 1).flatMap((line) => nameOn(line) ?? []);
  let indent = indentOf(lines[first] ?? "");
  for (const line of lines.slice(0, first).reverse()) {
    if (indent === 0) break;
    if (transparent.test(line) || indentOf(line) >= indent) continue;
    indent = indentOf(line);
    const name = nameOn(line);
    if (name !== undefined) names.push(name);
  }
  return [...new Set(names)];
};
