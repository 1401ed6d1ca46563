/**
 * Keeps numbers of a JSON text that no double holds: bounds of 64 bits in a tool's schema, ids in a conversation. A body that is
 * parsed and written again would lose their digits.
 *
 * While the body is worked on, such a number stands in it as a text with a mark that stands nowhere else.
 */

/** A JSON text without numbers that parsing would change. */
export interface Marked {
  readonly text: string;
  /** The same text once it was parsed, changed and written again, with its numbers as they were. */
  readonly restored: (json: string) => string;
}

/**
 * Marks the numbers of a text.
 *
 * @param text JSON; of another text the result means nothing
 */
export const marked = (text: string): Marked => {
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
  if (kept === 0) return { text, restored: (json) => json };
  const places = new RegExp(`"${mark}([-+.0-9eE]+)"`, "g");
  return { text: out + text.slice(kept), restored: (json) => json.replace(places, "$1") };
};

const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Digits that every double has: a shorter number without an exponent stays what it is. */
const sureDigits = 15;

const isHeld = (digits: string): boolean =>
  (digits.length <= sureDigits && !/[eE]/.test(digits)) || sameAs(digits) === sameAs(String(Number(digits)));

/** A number in one way of writing: its digits without zeros around them, and the power of ten of the last one. */
const sameAs = (written: string): string => {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written);
  if (parts === null) return written;
  const [, sign = "", whole = "", behind = "", power = "0"] = parts;
  const all = (whole + behind).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  return digits === "" ? "0" : `${sign}${digits}e${Number(power) - behind.length + all.length - digits.length}`;
};

/** Behind the text that begins with a quote. */
const stringEnd = (text: string, open: number): number => {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = at;
    while (text.charCodeAt(slashes - 1) === backslash) slashes -= 1;
    if ((at - slashes) % 2 === 0) return at + 1;
  }
  return text.length;
};

const backslash = 0x5c;

/** What does not stand in the text, whose number grows by one for each that does. */
const markFor = (text: string): string => {
  let mark = "number:";
  for (let count = 2; text.includes(mark); count += 1) mark = `number-${count}:`;
  return mark;
};
