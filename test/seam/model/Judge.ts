/**
 * Judges the result of a continuation by the whole answer that the model meant. It shares no code with the verifier.
 */
import type { Break } from "./Break.ts";
import type { Clumsy } from "./Clumsy.ts";
import type { Played } from "./Player.ts";

/** The text that a reader has in the end. */
export type Judgement =
  /** The answer that the model meant, to the character. */
  | "whole"
  /** The model's own new message, from its first character to its last. */
  | "own message"
  /** The shown text, followed by exactly the model's own text from there. */
  | "own words"
  /** Only the shown text. */
  | "refused"
  /** The shown text, followed by some honest text: a failure after shown text. */
  | "refused late"
  | "twice"
  | "missing"
  /** A refusal that took more characters than it may. */
  | "too late";

/** Results that are never permitted. */
export const wrongs: ReadonlyArray<Judgement> = ["twice", "missing", "too late"];

/** Maximum characters of a preface that may be read before it is refused. */
const atOnceMax = 8;

/** Maximum characters of the shown text that a model may repeat. */
const saidAgainMax = 2_000;

const wrong = (final: string, whole: string): Judgement => (final.length >= whole.length ? "twice" : "missing");

/** Judges an honest continuation: it is whole, or nothing of it has left. */
export const judgeHonest = ({ shown, whole }: Break, { released, verdict }: Played): Judgement => {
  const final = shown + released;
  if (verdict === "joined") return final === whole ? "whole" : wrong(final, whole);
  if (released === "") return "refused";
  return whole.startsWith(final) ? "refused late" : wrong(final, whole);
};

/** Judges a continuation that was cut again: what has left is the beginning of what was to come. */
export const judgeCut = ({ shown, whole }: Break, { released, verdict }: Played): Judgement => {
  if (verdict === "unproven") return "refused";
  return whole.startsWith(shown + released) ? "whole" : wrong(shown + released, whole);
};

/**
 * Returns true if the model's text equals exactly that of an honest model that continues another answer: it begins with the end of
 * the shown text, from before the quote. That is only possible if the text repeats itself in two places.
 */
const goesOn = ({ quote, shown }: Break, said: string, final: string, isWhole: boolean): boolean => {
  const text = shown.trimEnd();
  const message = said.trimStart();
  for (let at = text.lastIndexOf(quote); at >= 0 && text.length - at <= saidAgainMax; at -= 1) {
    if (!message.startsWith(text.slice(at))) continue;
    const told = shown.slice(0, at) + message;
    if (isWhole ? final.trimEnd() === told.trimEnd() : told.startsWith(final)) return true;
  }
  return false;
};

/** Judges a clumsy continuation. */
export const judgeClumsy = (
  it: Break,
  { demand, twice }: Clumsy,
  said: string,
  played: Played,
  prefilled = false,
): Judgement => {
  const { read, released, verdict } = played;
  const final = it.shown + released;
  // behind a prefill all that is said is new; behind an anchor the part before it is what was shown
  const front = prefilled ? it.shown.trimEnd() : it.shown.slice(0, it.shown.lastIndexOf(it.quote));
  if (verdict !== "joined") {
    if (released === "") {
      return demand === "refused at once" && verdict === "unproven" && read > atOnceMax ? "too late" : "refused";
    }
    const again = final.length > it.shown.length && final.indexOf(it.quote, it.shown.lastIndexOf(it.quote) + 1) >= 0;
    if (again && !it.whole.startsWith(final)) return "twice";
    const isPart = (front + said).startsWith(final) || it.whole.startsWith(final) || goesOn(it, said, final, false);
    return isPart ? "refused late" : "missing";
  }
  if (final === it.whole) return "whole";
  if (twice) return wrong(final, it.whole);
  if (final === said || final === it.shown.slice(0, it.shown.length - it.shown.trimStart().length) + said.trimStart()) {
    return "own message";
  }
  if (goesOn(it, said, final, true)) return "own words";
  if (final === front + said && (demand === "own words" || demand === "cannot be told")) return "own words";
  return wrong(final, it.whole);
};
