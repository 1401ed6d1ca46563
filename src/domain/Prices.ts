/** Estimates the tokens of text, and computes the cost of a model's tokens from an operator's price table. */
import * as Schema from "effect/Schema";

/** Characters of text per token, according to OpenAI's and Google's documentation for English. */
export const charactersPerToken = 4;

/**
 * Estimates the tokens of a string.
 *
 * @param characters its length in UTF-16 code units
 */
export const estimateTokens = (characters: number): number => Math.ceil(characters / charactersPerToken);

/** Price of a million tokens, in US dollars. */
export const TokenPrice = Schema.Struct({
  input: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
  output: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
});
export type TokenPrice = typeof TokenPrice.Type;

/** Prices by model. A key is a whole model name, or a prefix that ends with `*`. */
export type Prices = Readonly<Record<string, TokenPrice>>;

/** Table without a price for any model. */
export const none: Prices = {};

const perTokens = 1_000_000;

/**
 * Returns the price of a model. The whole name takes precedence over the longest prefix in the table.
 *
 * @returns undefined if the table has no price for the model
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

/** Computes the cost of tokens, in US dollars. */
export const costOf = (
  { input, output }: TokenPrice,
  tokens: { readonly input: number; readonly output: number },
): number => (input * tokens.input + output * tokens.output) / perTokens;
