/**
 * Computes the cost of a response in tokens, as its provider reported it or else as an estimate.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import { type Failure, resolve } from "../domain/Failure.ts";
import { estimateTokens } from "../domain/Prices.ts";

/**
 * Tokens of an image of any size: the maximum that Anthropic's API counts for one ("Vision": width × height / 750, after a
 * longest edge of 1,568 pixels). OpenAI's and Google's counts of an image are at or below it in most settings.
 */
export const tokensPerImage = 1_600;

/** Tokens that were paid for. */
export interface TokenCost {
  readonly input: number;
  readonly output: number;
  /** True if some of these numbers are estimates, because the provider did not report them. */
  readonly estimated: boolean;
}

/** The cost of a request that was free. */
export const free: TokenCost = { input: 0, output: 0, estimated: false };

/** Adds two counts, up to the largest safe integer, because a provider may report any number but a record holds exact integers. */
export const sum = (one: number, other: number): number => Math.min(Number.MAX_SAFE_INTEGER, one + other);

/** Returns the sum of input and output tokens, up to the largest safe integer. */
export const total = ({ input, output }: TokenCost): number => sum(input, output);

/** Minimum length of a piece of base64 that counts as a file instead of text. A picture of 800 bytes has this many characters. */
const fileCharactersMin = 1_024;

/**
 * Estimates the tokens of a request's body: its characters without pieces of base64, plus an image for each piece.
 *
 * Every run needs the estimate, so it inspects few characters. It reads each stretch of `fileCharactersMin` characters from its end, and
 * skips it at the first character that is not base64. Within a long piece only some characters are inspected, so other characters in
 * between may be counted as part of it.
 *
 * @param body JSON as it is sent; a byte counts as a character
 */
export const estimateRequest = (body: string | Uint8Array | undefined): number => {
  if (body === undefined) return 0;
  let files = 0;
  let images = 0;
  let at = 0;
  while (at + fileCharactersMin <= body.length) {
    const other = findLastNonBase64(body, at, at + fileCharactersMin);
    if (other >= at) {
      at = other + 1;
      continue;
    }
    const end = pieceEnd(body, at + fileCharactersMin);
    files += end - at;
    images += 1;
    at = end;
  }
  return estimateTokens(body.length - files) + images * tokensPerImage;
};

/** Characters inspected per `fileCharactersMin` characters of a long piece. */
const lookedAt = 16;

/** Returns the end of the piece that continues at a position, within the JSON string that contains it. */
const pieceEnd = (body: string | Uint8Array, from: number): number => {
  const quote = typeof body === "string" ? body.indexOf('"', from) : body.indexOf(QUOTE, from);
  const limit = quote === -1 ? body.length : quote;
  let end = from;
  while (end + fileCharactersMin <= limit && isFile(body, end + fileCharactersMin)) end += fileCharactersMin;
  return findFirstNonBase64(body, end, limit);
};

const isFile = (body: string | Uint8Array, to: number): boolean =>
  findLastNonBase64(body, to - lookedAt, to) < to - lookedAt;

/**
 * Returns the last position of a range that is not base64; the position before the range if all characters are. Each kind of body has its
 * own loop, because that is faster.
 */
const findLastNonBase64 = (body: string | Uint8Array, from: number, to: number): number => {
  let at = to - 1;
  if (typeof body === "string") while (at >= from && isBase64(body.charCodeAt(at))) at -= 1;
  else while (at >= from && isBase64(body[at] ?? 0)) at -= 1;
  return at;
};

/** Returns the first position of a range that is not base64; the end of the range if all characters are. */
const findFirstNonBase64 = (body: string | Uint8Array, from: number, to: number): number => {
  let at = from;
  if (typeof body === "string") while (at < to && isBase64(body.charCodeAt(at))) at += 1;
  else while (at < to && isBase64(body[at] ?? 0)) at += 1;
  return at;
};

const QUOTE = 0x22;

/** Letters, digits, `+`, `/`, and the `-` and `_` of the URL-safe alphabet. */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

/** 1 for a code of the alphabet, else 0. A table is read faster than ranges are compared. */
const base64 = new Uint8Array(256);
for (const character of alphabet) base64[character.charCodeAt(0)] = 1;

const isBase64 = (code: number): boolean => base64[code] === 1;

/** True if an attempt costs nothing, because nothing was sent or the provider did not process it. */
const isUnpaid = ({ delivery, progress }: AttemptFacts, failure: Failure | undefined): boolean =>
  delivery === "not_sent" ||
  (failure !== undefined && resolve(failure).not_processed && (progress === "none" || progress === "started"));

/**
 * Computes the cost of one response. Usage that was reported before the response's end is only a lower bound of its output.
 *
 * @param attempts the facts of the attempts that read it: the one that asked for it, and those that resumed it
 * @param failure the failure of the last attempt; undefined if it did not fail
 * @param requestTokens tokens of its request, if the caller knows them
 */
export const estimateResponse = (
  attempts: ReadonlyArray<AttemptFacts>,
  failure: Failure | undefined,
  requestTokens: number | undefined,
): TokenCost => {
  const last = attempts.length - 1;
  const paid = attempts.filter((facts, index) => !isUnpaid(facts, index === last ? failure : undefined));
  if (paid.length === 0) return free;
  const input = inputOf(paid);
  const reportedOutput = maxOf(paid.map(({ counters }) => counters.output_tokens)) ?? 0;
  const read = estimateTokens(paid.reduce((sum, { counters }) => sum + counters.characters, 0));
  const isWhole = reportedOutput > 0 && paid.some(({ terminal_seen }) => terminal_seen);
  return {
    input: input ?? requestTokens ?? 0,
    output: isWhole ? reportedOutput : Math.max(reportedOutput, read),
    estimated: input === undefined || (!isWhole && read > reportedOutput),
  };
};

/** Returns the tokens of a request: the highest number that was reported to one of its attempts; undefined if none was. */
export const inputOf = (attempts: ReadonlyArray<AttemptFacts>): number | undefined =>
  maxOf(attempts.map(({ counters }) => counters.input_tokens));

const maxOf = (numbers: ReadonlyArray<number | undefined>): number | undefined =>
  numbers.reduce((high, it) => (it === undefined ? high : Math.max(high ?? 0, it)), undefined);
