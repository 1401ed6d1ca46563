/**
 * Says how many tokens a text is likely to be, and what tokens of a model cost, by a table of an operator's own.
 */
import * as Schema from "effect/Schema";

/** Characters of text for a token: what OpenAI's and Google's documentation of tokens give as a rule of thumb for English. */
export const charactersPerToken = 4;

/**
 * Tokens of a text, as an estimate.
 *
 * @param characters its length in UTF-16 code units
 */
export const ofCharacters = (characters: number): number => Math.ceil(characters / charactersPerToken);

/** What a million tokens cost, in US dollars. */
export const TokenPrice = Schema.Struct({
  input: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
  output: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
});
export type TokenPrice = typeof TokenPrice.Type;

/** Prices by model: by its whole name, or by the beginning of it with `*` at the end. */
export type Prices = Readonly<Record<string, TokenPrice>>;

/** No model has a price. */
export const none: Prices = {};

/** Tokens that a price is given for. */
const perTokens = 1_000_000;

/**
 * The price of a model: of its whole name, else of the longest beginning that the table has.
 *
 * @returns undefined where the table has none
 */
export const priceOf = (prices: Prices, model: string | undefined): TokenPrice | undefined => {
  if (model === undefined) return undefined;
  if (Object.hasOwn(prices, model)) return prices[model];
  const beginnings = Object.keys(prices).filter((name) => name.endsWith("*") && model.startsWith(name.slice(0, -1)));
  const longest = beginnings.reduce<string | undefined>(
    (best, name) => (best === undefined || name.length > best.length ? name : best),
    undefined,
  );
  return longest === undefined ? undefined : prices[longest];
};

/** What tokens cost, in US dollars. */
export const costOf = (
  { input, output }: TokenPrice,
  tokens: { readonly input: number; readonly output: number },
): number => (input * tokens.input + output * tokens.output) / perTokens;
