/**
 * Follows JSON text that comes in pieces, so that its end is known without reading all of it again for every piece.
 *
 * Each character is looked at once. The scan knows strings and brackets and no more: a text that it takes for whole has yet to be
 * parsed. If that text is no JSON, no further piece can make it JSON.
 */

/** How far a text has come. `word`: a number or a literal, which only what follows can end. `beyond`: more came behind its end. */
export type Phase = "blank" | "open" | "word" | "whole" | "beyond";

/** What is known of the text so far, immutable. */
export interface JsonScan {
  readonly phase: Phase;
  /** Open brackets; of a word its characters. */
  readonly depth: number;
  readonly quoted: boolean;
  readonly escaped: boolean;
}

/** The scan before the first character. */
export const start: JsonScan = { phase: "blank", depth: 0, quoted: false, escaped: false };

/** Longest word that may be whole, in UTF-16 code units. */
export const wordCharactersMax = 32;

const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;

/** Goes on over the next piece. */
export const scan = (before: JsonScan, piece: string): JsonScan => {
  let { depth, escaped, phase, quoted } = before;
  for (let at = 0; at < piece.length && phase !== "beyond"; at++) {
    const code = piece.charCodeAt(at);
    if (quoted) {
      if (escaped) escaped = false;
      else if (code === BACKSLASH) escaped = true;
      else if (code === QUOTE) {
        quoted = false;
        if (depth === 0) phase = "whole";
      }
    } else if (code > SPACE) {
      if (phase === "whole") phase = "beyond";
      else if (code === QUOTE && phase !== "word") {
        quoted = true;
        phase = "open";
      } else if (phase !== "word" && opens(code)) {
        depth += 1;
        phase = "open";
      } else if (phase === "open" && closes(code)) {
        depth -= 1;
        if (depth === 0) phase = "whole";
      } else if (phase === "blank" || phase === "word") {
        depth += 1;
        phase = depth > wordCharactersMax ? "beyond" : "word";
      }
    }
  }
  return { phase, depth, quoted, escaped };
};

/** `{` and `[`. */
const opens = (code: number): boolean => code === 0x7b || code === 0x5b;

/** `}` and `]`. */
const closes = (code: number): boolean => code === 0x7d || code === 0x5d;
