/**
 * The knowledge of a model that must continue: its whole answer, the part that the reader has seen, and the quote in the request.
 */

/** A place at which a connection broke. */
export interface Break {
  /** All that the model means to say. */
  readonly whole: string;
  /** The shown text, to the last character. */
  readonly shown: string;
  /** The rest. */
  readonly rest: string;
  /** The end of what was shown, as the request quotes it. */
  readonly quote: string;
  /** The text of a model that follows its instructions: from the beginning of the quote. */
  readonly asked: string;
  /** The line that has opened the code block that the shown text ends in, if it ends in one. */
  readonly fence: string | undefined;
}

const lines = (text: string): ReadonlyArray<string> => text.replaceAll("\r", "").split("\n");

/** The line that opens the code block in which a text ends, as a reader of the text sees it. */
const openFence = (shown: string): string | undefined => {
  let open: string | undefined;
  for (const line of lines(shown).slice(0, -1)) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark === undefined) continue;
    if (open === undefined) open = line.trim();
    else if (line.trim() === mark && mark.startsWith(/^[`~]+/.exec(open)?.[0] ?? "")) open = undefined;
  }
  return open;
};

/** Cuts a text. */
export const cut = (whole: string, at: number, quote: string): Break => {
  const shown = whole.slice(0, at);
  return {
    whole,
    shown,
    rest: whole.slice(at),
    quote,
    asked: whole.slice(shown.lastIndexOf(quote)),
    fence: openFence(shown),
  };
};
