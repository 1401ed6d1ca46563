/**
 * Decides which names may be exported, and numbers the others.
 *
 * Tool names, models, codes and finish reasons come from a provider, a proxy or a model, and may contain a key, a prompt or a path. A name
 * that looks harmless may still contain one. A name passes if it consists of known words and few digits, or if the caller listed it as its
 * own. Any other name becomes `label_1`, `label_2`, … Equal names get equal numbers within one export. Unlike a hash, a number cannot be
 * reversed by guessing.
 */

import { Choice, Rule } from "../../domain/Decision.ts";
import { ClockName, kinds } from "../../domain/Failure.ts";
import { AttemptMode } from "../../domain/RunFacts.ts";
import { SeamFault, SeamProof, SeamRefusal } from "../../domain/SeamWords.ts";
import { codeLabel } from "../../failure/thrown/ErrorLabel.ts";
// Importing the table of provider errors registers its codes as known. Without the import, these codes would be numbered.
import "../../failure/tables/ProviderErrors.ts";
import { families, isVendor, modelWords, words } from "./ExportWords.ts";

/** Maximum length of an exported name, in UTF-16 code units. A longer name is numbered. */
export const nameCharactersMax = 64;

/** Maximum words and numbers in one name. */
const tokensMax = 8;

/** Maximum digits in a name, enough for a status or a counter. More digits could be a telephone number, an address or a key. */
const digitsMax = 3;

/** Maximum digits in a model's name in addition to its date, as in `llama-4-maverick-17b-128e-fp8`. */
const modelDigitsMax = 8;

/** Required shape of every exported name, including the caller's own. */
const shape = /^[A-Za-z0-9_][A-Za-z0-9_.:+/-]*$/;

/** The form of our own placeholders. A name from outside with this form is numbered, so that the two cannot be confused. */
const placeholder = /^label_\d+$/i;

/** Replaces names within one export. Equal names get the same placeholder. */
export class ExportLabels {
  readonly #own: ReadonlySet<string>;
  readonly #numbered = new Map<string, string>();

  /** @param own names from the caller's own program that may be exported unchanged */
  constructor(own: Iterable<string> = []) {
    this.#own = new Set(own);
  }

  /** Returns the name if it may be exported, else its placeholder. */
  of(text: string): string {
    if (text === "" || isPublic(text) || (this.#own.has(text) && isShaped(text))) return text;
    const known = this.#numbered.get(text);
    if (known !== undefined) return known;
    const made = `label_${this.#numbered.size + 1}`;
    this.#numbered.set(text, made);
    return made;
  }
}

/** Numbers the ids of incidents. A run id is the caller's choice and may be a person's name, so it is never exported. */
export class ExportIds {
  readonly #numbered = new Map<string, string>();

  of(id: string): string {
    const made = this.#numbered.get(id) ?? `incident_${this.#numbered.size + 1}`;
    this.#numbered.set(id, made);
    return made;
  }
}

/** Returns true if a name consists only of known words and few digits. */
export const isPublic = (text: string): boolean => {
  if (!isShaped(text)) return false;
  if (count.test(text) || reported.has(text)) return true;
  if (codeLabel(text) !== undefined && /[A-Za-z]/.test(text) && digitsOf(text) <= digitsMax) return true;
  const [vendor, routedTo, more] = text.split("/");
  if (vendor === undefined || more !== undefined) return false;
  return routedTo === undefined ? isWorded(vendor) : isVendor(vendor) && isWorded(routedTo);
};

const isShaped = (text: string): boolean =>
  text.length <= nameCharactersMax && shape.test(text) && !placeholder.test(text);

const isWorded = (name: string): boolean => {
  const tokens = tokensOf(name.replace(date, ""));
  if (tokens.length === 0 || tokens.length > tokensMax) return false;
  const isModel = tokens.some(isFamily);
  const digits = tokens.reduce((sum, token) => sum + digitsOf(token), 0);
  if (digits > (isModel ? modelDigitsMax : digitsMax) || dotted.test(name)) return false;
  const [known, numbers] = isModel ? [isModelWord, modelNumber] : [isWord, plainNumber];
  return tokens.some(known) && tokens.every((token) => known(token) || numbers.test(token));
};

/** Details and end reasons that this package itself reports. */
const reported: ReadonlySet<string> = new Set([
  ...Rule.literals,
  ...Choice.literals,
  ...AttemptMode.literals,
  ...ClockName.literals,
  ...Object.keys(kinds),
  ...[...SeamProof.literals, ...SeamRefusal.literals, ...SeamFault.literals],
  ...["accepted_partial", "record_failed", "consumer_finished", "caller_failed", "completed", "defect"],
  ...["not_started", "not_resumable"],
]);

/** A number as in a version, a status, or the key of a call, for example `1`, `429` or `0.12`. */
const count = /^\d{1,3}(?:\.\d{1,5})?$/;

/** The release date of a model, for example `20250929` or `2024-08-06`. */
const date = /(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)/;

/** An IP address, also after other words. */
const dotted = /\d\.\d+\.\d+\.\d/;

/** `4`, `4o`, `70b`, `32k`, `8x7b`, `v3`, `a22b`: letters only in positions that model names use. */
const modelNumber = /^(?:\d{1,4}[bkmeo]?|[vrkmqaf]p?\d{1,3}[bk]?|\d{1,2}x\d{1,3}[be])$/;

const plainNumber = /^v?\d{1,3}$/;

/** Splits at separators and camelCase boundaries; `GPT4` and `http2` stay whole. */
const tokensOf = (name: string): ReadonlyArray<string> =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[\s_.:+-]+/)
    .filter((token) => token !== "");

const stripTrailingDigits = (token: string): string => token.replace(/\d{1,2}$/, "");
const isFamily = (token: string): boolean =>
  families.has(token) || (token !== stripTrailingDigits(token) && families.has(stripTrailingDigits(token)));
const isWord = (token: string): boolean => words.has(token) || codeWord(token);
const isModelWord = (token: string): boolean => isFamily(token) || modelWords.has(token) || isWord(token);

/** Returns true if the token by itself is a word of error codes. */
const codeWord = (token: string): boolean => /[a-z]/.test(token) && codeLabel(token) !== undefined;

const digitsOf = (text: string): number => text.replace(/\D/g, "").length;
