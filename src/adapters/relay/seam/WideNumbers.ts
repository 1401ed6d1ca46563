/**
 * Preserves numbers in JSON text that no double can hold: 64-bit bounds in a tool's schema, ids in a conversation. Parsing and writing a
 * body would lose their digits.
 *
 * While the body is edited, each of these numbers is a string with a mark that occurs nowhere else in it.
 */

/** JSON text without numbers that parsing would change. */
export interface Marked {
  readonly text: string;
  /** Restores the numbers in the text after it was parsed, changed and written again. */
  readonly restore: (json: string) => string;
}

/**
 * Marks the numbers in JSON text that no double can hold.
 *
 * @param text JSON; the result for any other text is meaningless
 */
export const markWideNumbers = (text: string): Marked => {
  const mark = markFor(text);
  let out = "";
  let kept = 0;
  let from = 0;
  while (from < text.length) {
    const quote = text.indexOf('"', from);
    const to = quote === -1 ? text.length : quote;
    for (const { 0: digits, index } of text.slice(from, to).matchAll(number)) {
      if (isHeld(digits)) continue;
      out += `${text.slice(kept, from + index)}"${mark}${digits}"`;
      kept = from + index + digits.length;
    }
    from = quote === -1 ? text.length : stringEnd(text, quote);
  }
  if (kept === 0) return { text, restore: (json) => json };
  const places = new RegExp(`"${mark}([-+.0-9eE]+)"`, "g");
  return { text: out + text.slice(kept), restore: (json) => json.replace(places, "$1") };
};

const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Number of digits that every double holds. A shorter number without an exponent needs no mark. */
const sureDigits = 15;

const isHeld = (digits: string): boolean =>
  (digits.length <= sureDigits && !/[eE]/.test(digits)) || sameAs(digits) === sameAs(String(Number(digits)));

/** Normalises a number: its digits without zeros around them, and the power of ten of the last one. */
const sameAs = (written: string): string => {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written);
  if (parts === null) return written;
  const [, sign = "", whole = "", behind = "", power = "0"] = parts;
  const all = (whole + behind).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  return digits === "" ? "0" : `${sign}${digits}e${Number(power) - behind.length + all.length - digits.length}`;
};

/** The offset after the string whose opening quote is at `open`. */
const stringEnd = (text: string, open: number): number => {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = at;
    while (text.charCodeAt(slashes - 1) === backslash) slashes -= 1;
    if ((at - slashes) % 2 === 0) return at + 1;
  }
  return text.length;
};

const backslash = 0x5c;

/** Creates a mark that does not occur in the text, by counting up its number. */
const markFor = (text: string): string => {
  let mark = "number:";
  for (let count = 2; text.includes(mark); count += 1) mark = `number-${count}:`;
  return mark;
};
