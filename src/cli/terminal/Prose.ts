/**
 * Breaks sentences into lines under a margin, with a title beside the first one.
 */
import type { Ink, Tone } from "./Ink.ts";

/** Where a paragraph stands. */
export interface Layout {
  readonly columns: number;
  /** Columns before the title. */
  readonly indent: number;
  /** Columns from the title to the text. */
  readonly margin: number;
}

/**
 * A paragraph with its title in the margin.
 *
 * @param tone what the title is
 */
export const paragraph = (title: string, text: string, layout: Layout, ink: Ink, tone: Tone = "quiet"): string => {
  const [first = "", ...more] = broken(text, layout.columns - layout.indent - layout.margin);
  const before = " ".repeat(layout.indent);
  const head = title === "" ? " ".repeat(layout.margin) : ink(tone, title.padEnd(layout.margin));
  return [
    `${before}${head}${first}`.trimEnd(),
    ...more.map((line) => `${before}${" ".repeat(layout.margin)}${line}`),
  ].join("\n");
};

/**
 * The lines of a text.
 *
 * @param width most characters of a line; a longer word stands on a line of its own
 */
export const broken = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last !== "" && last.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
};
