/** Finds fenced code in Markdown text. In code, white space and quotes are significant. */

/** The text between an opening and a closing fence line. */
export interface CodeFence {
  /** Offset after the opening line. */
  readonly from: number;
  /** Start of the closing line, or the end of the text if the fence is open. */
  readonly to: number;
  /** The opening line, trimmed. */
  readonly opener: string;
}

const opening = /^[ \t]*((`{3,})[^`]*|(~{3,}).*)$/;

const closing = /^[ \t]*(`{3,}|~{3,})[ \t]*$/;

/** Maximum length of a line that is checked, in code units. A longer line is not a fence. */
const lineMax = 256;

/** Finds the code fences in text, in order. */
export const codeFences = (text: string): ReadonlyArray<CodeFence> => {
  const found: Array<CodeFence> = [];
  let open: { readonly from: number; readonly opener: string; readonly marker: string } | undefined;
  let at = 0;
  while (at <= text.length) {
    const end = text.indexOf("\n", at);
    const whole = end >= 0;
    const next = whole ? end + 1 : text.length + 1;
    const line = next - at > lineMax ? "" : text.slice(at, next).replace(/[\r\n]+$/, "");
    if (open === undefined) {
      const match = opening.exec(line);
      // A fence opens only when its line is complete.
      if (match !== null && whole) {
        open = { from: next, opener: line.trim(), marker: match[2] ?? match[3] ?? "" };
      }
    } else {
      const marker = closing.exec(line)?.[1];
      if (marker?.startsWith(open.marker)) {
        found.push({ from: open.from, to: at, opener: open.opener });
        open = undefined;
      }
    }
    at = next;
  }
  if (open !== undefined) found.push({ from: open.from, to: text.length, opener: open.opener });
  return found;
};

/** Returns the fence that contains an offset; undefined if none does. */
export const fenceAt = (fences: ReadonlyArray<CodeFence>, at: number): CodeFence | undefined =>
  fences.find(({ from, to }) => at >= from && at < to);
