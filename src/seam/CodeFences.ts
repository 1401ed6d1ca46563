/**
 * Finds the code of a Markdown text that stands between fences: there white space and quotes are the program's.
 */

/** What stands between the line that opens a fence and the line that closes it. */
export interface CodeFence {
  /** Behind the end of the line that opens it. */
  readonly from: number;
  /** Where the line begins that closes it; the end of the text while it is open. */
  readonly to: number;
  /** The line that opens it, without the white space around it. */
  readonly opener: string;
}

const opening = /^[ \t]*((`{3,})[^`]*|(~{3,}).*)$/;

const closing = /^[ \t]*(`{3,}|~{3,})[ \t]*$/;

/** Longest line that is looked at: no fence is longer. */
const lineMax = 256;

/** Finds the fences of a text, in order. */
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
      // a line that is cut has not opened anything yet
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

/** The fence that a place stands in, if any. */
export const fenceAt = (fences: ReadonlyArray<CodeFence>, at: number): CodeFence | undefined =>
  fences.find(({ from, to }) => at >= from && at < to);
