/**
 * Converts docstrings to Markdown.
 */
import type { Checker, Symbol as Declared } from "typescript/unstable/sync";

/** The content of a docstring. */
export interface Docstring {
  /** The text before the first tag. */
  readonly text: string;
  readonly tags: ReadonlyArray<{ readonly name: string; readonly text: string }>;
}

/** Reads the docstring of a symbol. If a schema and its type share the symbol, the schema's docstring is used. */
export const docstringOf = (checker: Checker, symbol: Declared): Docstring => ({
  text: symbol.getDocumentationComment(checker).trim(),
  tags: symbol.getJsDocTags(checker).map(({ name, text }) => ({ name, text: (text ?? "").trim() })),
});

/** Formats the text, followed by a list of parameters, return value and errors. */
export const markdown = ({ tags, text }: Docstring): string =>
  [text, tags.map(line).join("\n")].filter((paragraph) => paragraph !== "").join("\n\n");

/** Returns the first sentence, for a table. */
export const sentence = ({ text }: Docstring): string => {
  const [paragraph = ""] = text.split(/\n\s*\n/);
  const line = paragraph.replaceAll("\n", " ");
  return /^.*?[.](?=\s|$)/.exec(line)?.[0] ?? line.replace(/:$/, ".");
};

const words: Readonly<Record<string, string>> = { returns: "Returns", throws: "Throws", default: "Default:" };

const line = ({ name, text }: Docstring["tags"][number]): string => {
  const one = text.replace(/\s*\n\s*/g, " ");
  if (name !== "param") return `- ${words[name] ?? `@${name}`} ${one}`;
  const [, parameter = "", rest = ""] = /^(\S+)\s*(?:-\s*)?(.*)$/.exec(one) ?? [];
  return `- \`${parameter}\`: ${rest}`;
};
