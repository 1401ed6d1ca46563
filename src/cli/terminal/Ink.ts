/**
 * Colours words for a terminal, and leaves them as they are everywhere else.
 */
import { styleText } from "node:util";
import type * as Words from "../../story/Words.ts";

/** What a word is, which decides its colour: a tone of the story, or one that only a terminal has. */
export type Tone = Words.Tone | "careful" | "strong";

/** Colours a text. */
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

/** For pipes and files: no colours. */
export const plain: Ink = (_tone, text) => text;

/**
 * The ink for a stream.
 *
 * @param stream colours only where it is a terminal, and where NO_COLOR and its kin do not forbid them
 */
export const inkFor = (stream: NodeJS.WriteStream): Ink =>
  stream.isTTY !== true ? plain : (tone, text) => styleText(formats[tone], text, { stream });
