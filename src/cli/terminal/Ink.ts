/**
 * Colours text on a terminal. In a pipe or a file the text stays unchanged.
 */
import { styleText } from "node:util";
import type * as Words from "../../story/Words.ts";

/** The meaning of text, which determines its colour: a tone of the story, or one that only the terminal uses. */
export type Tone = Words.Tone | "careful" | "strong";

/** A function that colours text by its tone. */
export type Ink = (tone: Tone, text: string) => string;

const formats: Readonly<Record<Tone, Parameters<typeof styleText>[0]>> = {
  good: "green",
  bad: "red",
  ask: "yellow",
  careful: "yellow",
  quiet: "dim",
  run: "bold",
  strong: "bold",
};

/** Returns text unchanged, for pipes and files. */
export const plainInk: Ink = (_tone, text) => text;

/**
 * Creates the ink for a stream.
 *
 * @param stream the output; coloured only if it is a terminal and neither NO_COLOR nor a similar variable forbids colours
 */
export const inkFor = (stream: NodeJS.WriteStream): Ink =>
  stream.isTTY !== true ? plainInk : (tone, text) => styleText(formats[tone], text, { stream });
