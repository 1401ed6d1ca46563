/**
 * Colours words for a terminal, and leaves them as they are everywhere else.
 */
import { styleText } from "node:util";

/** What a word is, which decides its colour. */
export type Tone = "good" | "bad" | "careful" | "quiet" | "strong";

/** Colours a text. */
export type Ink = (tone: Tone, text: string) => string;

const formats = { good: "green", bad: "red", careful: "yellow", quiet: "dim", strong: "bold" } as const;

/** For pipes and files: no colours. */
export const plain: Ink = (_tone, text) => text;

/**
 * The ink for a stream.
 *
 * @param stream colours only where it is a terminal, and where NO_COLOR and its kin do not forbid them
 */
export const inkFor = (stream: NodeJS.WriteStream): Ink =>
  stream.isTTY !== true ? plain : (tone, text) => styleText(formats[tone], text, { stream });
