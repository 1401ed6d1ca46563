/**
 * Continuations by models that ignore their instructions. A reader expects none of them.
 */
import type { Break } from "./Break.ts";
import type { Way } from "./Honest.ts";

/** The required result of such a continuation. */
export type Demand =
  /** It never joins. */
  | "refused"
  /** It never joins, and within 8 characters. */
  | "refused at once"
  /** The text before the repetition has left, and the repetition never does. */
  | "refused late"
  /** It continues after the seam with words that only the model knows, which join without loss or duplication. */
  | "own words"
  /** Indistinguishable from an honest text, so its result is only printed. */
  | "cannot be told";

/** A clumsy continuation and its required result. */
export interface Clumsy {
  readonly demand: Demand;
  readonly say: Way;
  /** The end of the response; clean by default. */
  readonly ends?: "breaks" | "calls";
  /** True if its own message contains the text twice, too, so that it is no whole answer either. */
  readonly twice?: true;
}

/** A change that leaves the text as it was is none. */
const changed = (it: Break, quote: string): string | undefined => (quote === it.quote ? undefined : quote + behind(it));

const behind = (it: Break): string => it.asked.slice(it.quote.length);

/** The sentence that was cut, as a reader sees it. */
const half = ({ shown }: Break): string => {
  const text = shown.trimEnd();
  const starts = Array.from(
    text.matchAll(/(?<=[.!?]\s+)\S|(?<=\n\s*)\S|(?<=[。！？])[^\s。！？]/g),
    ({ index }) => index,
  );
  return text.slice(starts.at(-1) ?? text.length - text.trimStart().length);
};

/** Enough for a repetition to be one. */
const halfMin = 6;

/** Maximum distance from its end at which a repetition that is detected may begin. */
const farthest = 1_600;

const longHalf = (it: Break): string | undefined =>
  half(it).length >= halfMin && half(it).length * 2 < it.shown.length ? half(it) : undefined;

const said = (text: string | undefined, make: (text: string) => string): string | undefined =>
  text === undefined ? undefined : make(text);

const long = (it: Break): boolean => it.quote.length >= 20;

const refused = (say: Way): Clumsy => ({ demand: "refused", say });

const twice = (say: Way): Clumsy => ({ demand: "refused", say, twice: true });

const atOnce = (say: Way): Clumsy => ({ demand: "refused at once", say });

const own = (say: Way): Clumsy => ({ demand: "own words", say });

/** In a place between the first and the last characters of the quote. */
const middle = (it: Break): number => Math.floor(it.quote.length / 2);

const inFront: Readonly<Record<string, Clumsy>> = {
  "a preface": atOnce(({ asked }) => `Sure, here is the rest of my answer:\n\n${asked}`),
  "a preface and only the rest": atOnce(({ rest }) => `Continuing from where I left off: ${rest}`),
  "a preface that quotes the anchor": atOnce((it) => `My message ended with “${it.quote}”.\n\n${behind(it)}`),
  "the anchor in quotation marks": refused((it) => `"${it.quote}"${behind(it)}`),
  "the anchor between the marks": refused((it) => `<cut>${it.quote}</cut>${behind(it)}`),
  "the anchor in bold": refused((it) => `**${it.quote}**${behind(it)}`),
  "the anchor as a quotation": refused((it) => `> ${it.quote}${behind(it)}`),
  "an ellipsis in front": atOnce(({ asked }) => `…${asked}`),
  "a start over, same words, of a long text": refused(({ shown, whole }) => (shown.length > 2_000 ? whole : undefined)),
  "a start over in other words": atOnce((it) => `Let me put the whole answer differently. ${it.rest}`),
  "a paraphrase": atOnce((it) => `Zusammengefasst — in short: ${it.rest}`),
  "another language": atOnce((it) => `Natürlich, hier geht es weiter: ${it.rest}`),
  "another script": atOnce((it) => `好的，这是剩下的部分。${it.rest}`),
  "a refusal": atOnce(() => "Unfortunately I can't help with that."),
  "an apology": atOnce(({ asked }) => `Pardon the interruption!\n${asked}`),
  "a heading": atOnce(({ asked }) => `# Continued\n\n${asked}`),
  "a code block opened": atOnce((it) => (it.fence === undefined ? `\`\`\`\n${it.asked}` : undefined)),
  "a code block opened in another language": refused((it) => said(it.fence, () => `\`\`\`brainfuck\n${it.asked}`)),
  "a code block closed": refused((it) =>
    it.fence !== undefined && /[a-z]/.test(it.fence) ? `${/^[`~]+/.exec(it.fence)?.[0]}\n\n${it.asked}` : undefined,
  ),
  "only the half sentence": refused((it) =>
    said(it.quote.startsWith(half(it)) ? undefined : longHalf(it), (text) => text + it.rest),
  ),
  "only the rest": refused((it) => (it.rest.trim() === "" ? undefined : it.rest)),
  "from the middle of the anchor": refused((it) => (long(it) ? it.asked.slice(middle(it)) : undefined)),
  "from any place of the text": refused((it, dice) => {
    const at = dice.between(0, it.shown.length - 1);
    // a model that begins at a sentence or a line is honest
    return /[\p{L}\p{N}]$/u.test(it.shown.slice(0, at)) && /^[\p{Ll}\p{N}]/u.test(it.shown.slice(at))
      ? it.whole.slice(at)
      : undefined;
  }),
};

const inside: Readonly<Record<string, Clumsy>> = {
  "other case": refused((it) => changed(it, it.quote.toUpperCase())),
  "small letters": refused((it) => changed(it, it.quote.toLowerCase())),
  "a gap in the anchor": refused((it) => {
    const less = it.quote.slice(0, middle(it)) + it.quote.slice(middle(it) + 6);
    // what is left out of a bar is seen only where the bar ends
    return long(it) && !it.quote.startsWith(less) ? changed(it, less) : undefined;
  }),
  "a word more in the anchor": refused((it) =>
    long(it) ? `${it.quote.slice(0, middle(it))}indeed${it.asked.slice(middle(it))}` : undefined,
  ),
  "another digit": refused((it) =>
    changed(
      it,
      it.quote.replace(/\d(?=[^\d]*$)/, (digit) => String((Number(digit) + 1) % 10)),
    ),
  ),
  "another letter": refused((it) => {
    const at = middle(it);
    return /[a-z]/.test(it.quote[at] ?? "")
      ? `${it.asked.slice(0, at)}${it.quote[at] === "q" ? "k" : "q"}${it.asked.slice(at + 1)}`
      : undefined;
  }),
  "the cut word ended otherwise": refused((it) =>
    /[a-z]{3}$/.test(it.shown) ? `${it.quote.slice(0, -1)}q${it.rest}` : undefined,
  ),
  "composed characters": refused((it) => changed(it, it.quote.normalize("NFC"))),
  "decomposed characters": refused((it) => changed(it, it.quote.normalize("NFD"))),
  "a character that is not seen": refused((it) =>
    long(it) ? `${it.asked.slice(0, middle(it))}\u200b${it.asked.slice(middle(it))}` : undefined,
  ),
  "spaces left out": refused((it) => changed(it, it.quote.replaceAll(/(?<=\S)\s+(?=\S)/g, ""))),
  "written for a page": refused((it) => changed(it, it.quote.replaceAll("<", "&lt;").replaceAll('"', "&quot;"))),
  "written as a JSON string": refused((it) => changed(it, JSON.stringify(it.quote).slice(1, -1))),
  "other white space in code": refused((it) =>
    it.fence === undefined ? undefined : inCode(it, (text) => text.replace(/(?<=\S)(\n?) +(?=\S)/, "$1 \t ")),
  ),
  "curly quotes in code": refused((it) =>
    it.fence === undefined ? undefined : inCode(it, (text) => text.replace(/"/, "“").replace(/'/, "’")),
  ),
  "a stop in the anchor": refused((it) => (long(it) ? it.quote.slice(0, middle(it)).trimEnd() : undefined)),
  "a stop before anything": refused(() => ""),
  "a break in the anchor": {
    ...refused((it) => (long(it) ? it.quote.slice(0, middle(it)) : undefined)),
    ends: "breaks",
  },
  "a call before anything": { ...refused(() => ""), ends: "calls" },
  "a call in the anchor": {
    ...refused((it) => (long(it) ? it.quote.slice(0, middle(it)).trimEnd() : undefined)),
    ends: "calls",
  },
};

/** Changes the quote after the last line that opens code; the text before it is prose. */
const inCode = (it: Break, change: (text: string) => string): string | undefined => {
  const open = it.quote.lastIndexOf(it.fence ?? "\n");
  if (open >= 0) return undefined;
  return changed(it, change(it.quote));
};

const behindSeam: Readonly<Record<string, Clumsy>> = {
  "the anchor twice": twice((it) => (long(it) ? it.asked.slice(0, it.quote.length) + it.asked : undefined)),
  "the anchor twice, on two lines": twice((it) => `${it.quote}${behindWhite(it)}\n\n${it.asked}`),
  "the half sentence anew": twice((it) => said(longHalf(it), (text) => it.quote + behindWhite(it) + text + it.rest)),
  "the end of the half sentence anew": twice((it, dice) => {
    const end = half(it).slice(-farthest);
    const [text = ""] = /\b\w.*$/su.exec(end.slice(dice.between(1, Math.max(1, end.length - 20)))) ?? [];
    return text.length >= 20 && long(it) ? `${it.quote}${behindWhite(it)} ${text}${it.rest}` : undefined;
  }),
  "the half sentence anew behind a space": twice((it) =>
    said(longHalf(it), (text) => `${it.quote}${behindWhite(it)} ${text}${it.rest}`),
  ),
  "the half sentence anew on a new line": twice((it) =>
    said(longHalf(it), (text) => `${it.quote}${behindWhite(it)}\n${text}${it.rest}`),
  ),
  "the whole text anew behind the anchor": twice((it) =>
    long(it) ? `${it.quote}${behindWhite(it)}\n${it.whole}` : undefined,
  ),
  "a preface behind the anchor, and the anchor again": {
    demand: "refused late",
    twice: true,
    say: (it) => (it.quote.length >= 41 ? `${it.quote}${behindWhite(it)} — sorry, once more: ${it.asked}` : undefined),
  },
  "a half sentence of few letters anew": {
    demand: "cannot be told",
    say: (it) => (half(it).length < halfMin && long(it) ? it.quote + behindWhite(it) + half(it) + it.rest : undefined),
  },
  "a preface behind the anchor": own((it) => `${it.quote}${behindWhite(it)} … and now the rest: ${it.rest}`),
  "a gap behind the anchor": own((it) =>
    it.rest.length > 90 ? it.quote + behindWhite(it) + it.rest.slice(41) : undefined,
  ),
  "an apology at the end": own((it) => `${it.asked}\n\nSorry for the interruption!`),
  "a code block closed behind the anchor": own((it) =>
    it.fence === undefined ? undefined : `${it.quote}${behindWhite(it)}\n\`\`\`\nThat is all.`,
  ),
};

/** The white space that was shown behind the quote. */
const behindWhite = (it: Break): string => it.shown.slice(it.shown.lastIndexOf(it.quote) + it.quote.length);

/** The clumsy ways, by name. */
export const clumsy: Readonly<Record<string, Clumsy>> = { ...inFront, ...inside, ...behindSeam };

/** Faults after a prefill. */
export const clumsyPrefill: Readonly<Record<string, Clumsy>> = {
  "the anchor, as if it had been asked for": twice((it) =>
    it.quote.length >= 41 && it.shown.length > it.quote.length + 20 ? it.asked : undefined,
  ),
  "the half sentence anew": twice((it) => said(longHalf(it), (text) => text + it.rest)),
  "the half sentence anew on a new line": twice((it) => said(longHalf(it), (text) => `\n${text}${it.rest}`)),
  "a start over that breaks off": twice((it) => (it.shown.length > 120 ? it.shown.slice(0, 100) : undefined)),
  "the whole text twice": twice((it) => (it.shown.trim().length >= 45 ? it.shown + it.whole : undefined)),
};
