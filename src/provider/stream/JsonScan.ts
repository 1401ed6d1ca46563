/**
 * Scans JSON text that arrives in pieces, so that its end is found without rereading the text for every piece.
 *
 * Each character is read once. The scan knows only strings and brackets, so text in the phase `whole` still has to be parsed. If that text
 * is not JSON, no further piece can make it JSON.
 */

/** Progress of the text. `word`: a number or a literal, which ends only with the next character. `beyond`: more text followed the end. */
export type Phase = "blank" | "open" | "word" | "whole" | "beyond";

/** The immutable state of a scan. */
export interface JsonScan {
  readonly phase: Phase;
  /** Number of open brackets; in the phase `word`, the length of the word. */
  readonly depth: number;
  readonly quoted: boolean;
  readonly escaped: boolean;
}

/** The scan before the first character. */
export const start: JsonScan = { phase: "blank", depth: 0, quoted: false, escaped: false };

/** Maximum length of a word that may be complete, in UTF-16 code units. */
export const wordCharactersMax = 32;

const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;

/** Scans the next piece. */
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
      } else if (phase !== "word" && isOpeningBracket(code)) {
        depth += 1;
        phase = "open";
      } else if (phase === "open" && isClosingBracket(code)) {
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
const isOpeningBracket = (code: number): boolean => code === 0x7b || code === 0x5b;

/** `}` and `]`. */
const isClosingBracket = (code: number): boolean => code === 0x7d || code === 0x5d;
