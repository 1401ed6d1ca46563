/**
 * Says what a response has cost in tokens, as its provider has told it and else as an estimate.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import { type Failure, resolve } from "../domain/Failure.ts";
import { ofCharacters } from "../domain/Prices.ts";

/**
 * Tokens of an image, whatever its size: the most that Anthropic's API counts for one ("Vision": width × height / 750, after a
 * longest edge of 1,568 pixels). OpenAI's and Google's counts of an image lie at or below it in most settings.
 */
export const tokensPerImage = 1_600;

/** Tokens that were paid for. */
export interface TokenCost {
  readonly input: number;
  readonly output: number;
  /** A part of them was not told by the provider. */
  readonly estimated: boolean;
}

/** What costs nothing. */
export const free: TokenCost = { input: 0, output: 0, estimated: false };

/** The sum of two counts. What a provider tells may be any number, and a record holds whole ones that are exact. */
export const sum = (one: number, other: number): number => Math.min(Number.MAX_SAFE_INTEGER, one + other);

/** All tokens of a cost. */
export const total = ({ input, output }: TokenCost): number => sum(input, output);

/** Characters of base64 in one piece that are a file and no text: a picture of 800 bytes has as many. */
const fileCharactersMin = 1_024;

/**
 * Tokens of a request's body, as an estimate: its characters without pieces of base64, which count as an image each.
 *
 * Every run is told it, so few characters are looked at: a piece that is long enough holds one of every `fileCharactersMin`. In a long
 * piece that is one text few are looked at too: there the count is an estimate where other characters stand between.
 *
 * @param body JSON, as it is sent; a byte counts as a character
 */
export const ofRequest = (body: string | Uint8Array | undefined): number => {
  if (body === undefined) return 0;
  let files = 0;
  let images = 0;
  let at = 0;
  while (at + fileCharactersMin <= body.length) {
    const other = lastOther(body, at, at + fileCharactersMin);
    if (other >= at) {
      at = other + 1;
      continue;
    }
    const end = pieceEnd(body, at + fileCharactersMin);
    files += end - at;
    images += 1;
    at = end;
  }
  return ofCharacters(body.length - files) + images * tokensPerImage;
};

/** Letters that are looked at of each `fileCharactersMin` of a long piece. */
const lookedAt = 16;

/** Where a piece ends that goes on at a place: no further than the text that it stands in. */
const pieceEnd = (body: string | Uint8Array, from: number): number => {
  const quote = typeof body === "string" ? body.indexOf('"', from) : body.indexOf(QUOTE, from);
  const limit = quote === -1 ? body.length : quote;
  let end = from;
  while (end + fileCharactersMin <= limit && isFile(body, end + fileCharactersMin)) end += fileCharactersMin;
  return firstOther(body, end, limit);
};

const isFile = (body: string | Uint8Array, to: number): boolean => lastOther(body, to - lookedAt, to) < to - lookedAt;

/** The last place of a part that is no letter of base64; the one before the part where all are. A loop for each kind of body is a fast one. */
const lastOther = (body: string | Uint8Array, from: number, to: number): number => {
  let at = to - 1;
  if (typeof body === "string") while (at >= from && isBase64(body.charCodeAt(at))) at -= 1;
  else while (at >= from && isBase64(body[at] ?? 0)) at -= 1;
  return at;
};

/** The first place of a part that is no letter of base64; its end where all are. */
const firstOther = (body: string | Uint8Array, from: number, to: number): number => {
  let at = from;
  if (typeof body === "string") while (at < to && isBase64(body.charCodeAt(at))) at += 1;
  else while (at < to && isBase64(body[at] ?? 0)) at += 1;
  return at;
};

const QUOTE = 0x22;

/** Letters, digits, `+`, `/`, and the `-` and `_` of the other alphabet. */
const isBase64 = (code: number): boolean =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 47 && code <= 57) ||
  code === 43 ||
  code === 45 ||
  code === 95;

/** Whether an attempt is not paid for: nothing of it was sent, or its provider did nothing with it. */
const isUnpaid = ({ delivery, progress }: AttemptFacts, failure: Failure | undefined): boolean =>
  delivery === "not_sent" ||
  (failure !== undefined && resolve(failure).not_processed && (progress === "none" || progress === "started"));

/**
 * What one response has cost. Usage that was told before the response's end is no more than a lower bound of its output.
 *
 * @param attempts the facts of the attempts that read it: the one that asked for it, and those that resumed it
 * @param failure what the last of them failed by; undefined where none did
 * @param requestTokens tokens of its request, where the caller knows them
 */
export const ofResponse = (
  attempts: ReadonlyArray<AttemptFacts>,
  failure: Failure | undefined,
  requestTokens: number | undefined,
): TokenCost => {
  const last = attempts.length - 1;
  const paid = attempts.filter((facts, index) => !isUnpaid(facts, index === last ? failure : undefined));
  if (paid.length === 0) return free;
  const input = inputOf(paid);
  const told = most(paid.map(({ counters }) => counters.output_tokens)) ?? 0;
  const read = ofCharacters(paid.reduce((sum, { counters }) => sum + counters.characters, 0));
  const isWhole = told > 0 && paid.some(({ terminal_seen }) => terminal_seen);
  return {
    input: input ?? requestTokens ?? 0,
    output: isWhole ? told : Math.max(told, read),
    estimated: input === undefined || (!isWhole && read > told),
  };
};

/** Tokens of a request, the highest number that one of its attempts was told; undefined where none was. */
export const inputOf = (attempts: ReadonlyArray<AttemptFacts>): number | undefined =>
  most(attempts.map(({ counters }) => counters.input_tokens));

/** The highest number that was told. */
const most = (numbers: ReadonlyArray<number | undefined>): number | undefined =>
  numbers.reduce((high, it) => (it === undefined ? high : Math.max(high ?? 0, it)), undefined);
