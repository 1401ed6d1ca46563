/** Breaks sentences into lines with a left margin, and prints a title in the margin of the first line. */
import type { Ink, Tone } from "./Ink.ts";

/** The position and width of a paragraph. */
export interface Layout {
  readonly columns: number;
  /** Columns before the title. */
  readonly indent: number;
  /** Columns from the title to the text. */
  readonly margin: number;
}

/**
 * Formats a paragraph with its title in the margin.
 *
 * @param tone the title's tone
 */
export const paragraph = (title: string, text: string, layout: Layout, ink: Ink, tone: Tone = "quiet"): string => {
  const [first = "", ...more] = wrap(text, layout.columns - layout.indent - layout.margin);
  const before = " ".repeat(layout.indent);
  const head = title === "" ? " ".repeat(layout.margin) : ink(tone, title.padEnd(layout.margin));
  return [
    `${before}${head}${first}`.trimEnd(),
    ...more.map((line) => `${before}${" ".repeat(layout.margin)}${line}`),
  ].join("\n");
};

/**
 * Breaks text into lines at spaces.
 *
 * @param width maximum characters per line; a longer word gets a separate line
 */
export const wrap = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last !== "" && last.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
};
