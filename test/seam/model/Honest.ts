/**
 * Continuations by an honest model with the answer that it means, in every way that the rule permits.
 */
import type { Dice } from "../../simulation/Dice.ts";
import type { Break } from "./Break.ts";

/** A way to continue. Returns the model's text, or undefined if this way is impossible at a break. */
export type Way = (it: Break, dice: Dice) => string | undefined;

/** Changes the quote except its last characters: the text at the seam itself is exact. */
const within = (it: Break, change: (text: string) => string): string | undefined => {
  if (it.fence !== undefined || /(`{3}|~{3})/.test(it.quote) || it.quote.length < 12) return undefined;
  const inner = it.asked.slice(0, it.quote.length - 4);
  const changed = change(inner);
  return changed === inner ? undefined : changed + it.asked.slice(inner.length);
};

/** The starts of sentences and lines in the last 1,500 characters before the quote. */
const earlier = (it: Break): ReadonlyArray<number> => {
  const before = it.shown.length - Math.max(0, it.shown.lastIndexOf(it.quote));
  const from = Math.max(0, it.shown.length - 1_500);
  return Array.from(
    it.shown.slice(from).matchAll(/(?<=[.!?]\s)\S|(?<=\n)\S|(?<=[。！？])[^\s。！？]/g),
    ({ index }) => from + index,
  ).filter((at) => it.shown.length - at > before);
};

const shortMax = 2_000;

/** The ways, by name. */
export const honest: Readonly<Record<string, Way>> = {
  "exactly the anchor": ({ asked }) => asked,
  "white space in front": ({ asked }, dice) => dice.pick(["\n", " ", "\n\n  ", "\r\n"]) + asked,
  "from an earlier sentence": (it, dice) => {
    const starts = earlier(it);
    const at = starts[dice.between(0, Math.max(0, starts.length - 1))];
    return at === undefined ? undefined : it.whole.slice(at);
  },
  "from the beginning of a short text": ({ shown, whole }) => (shown.length <= shortMax ? whole : undefined),
  "other white space in the anchor": (it, dice) =>
    within(it, (text) => text.replaceAll(/(?<=\S)\s+(?=\S)/g, () => dice.pick([" ", "\n", "\n\n", "  "]))),
  "typographic quotes and dashes": (it) =>
    within(it, (text) => text.replaceAll("'", "’").replaceAll('"', "”").replaceAll("-", "—")),
  "plain quotes and dashes": (it) =>
    within(it, (text) => text.replaceAll(/[’‘]/g, "'").replaceAll(/[“”]/g, '"').replaceAll(/[–—]/g, "-")),
  "carriage returns in the anchor": (it) =>
    within(it, (text) => text.replaceAll(/\r?\n/g, (end) => (end === "\n" ? "\r\n" : "\n"))),
  "the code block opened again": ({ asked, fence, quote }) =>
    fence === undefined || quote.includes(fence) ? undefined : `${fence}\n${asked}`,
};

/** The ways of a provider that continues a prefill. */
export const honestPrefill: Readonly<Record<string, Way>> = {
  "straight on": ({ rest, shown }) => `${shown.slice(shown.trimEnd().length)}${rest}`,
  "an echo of all that was shown": ({ shown, whole }) => (shown.trim().length >= 45 ? whole : undefined),
};
