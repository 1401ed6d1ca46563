/**
 * Computes the cost of a run: the tokens of the response that was kept and of those that broke, reported or estimated. If its model has a
 * price, it also computes the cost in US dollars.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Failure } from "../domain/Failure.ts";
import * as Prices from "../domain/Prices.ts";
import * as Tokens from "../facts/Tokens.ts";
import type { AttemptRecord, RunRecord } from "../recorder/RunRecord.ts";
import { groupDigits } from "./Times.ts";

/** Cost of a run. */
export interface RunTokens {
  /** Tokens of the response that was kept. */
  readonly used: number;
  /** Tokens of responses that broke. */
  readonly wasted: number;
  /** True if some numbers are estimates, because the provider did not report them. */
  readonly estimated: boolean;
  /** Cost in US dollars; omitted if the model has no price. */
  readonly cost_usd?: { readonly used: number; readonly wasted: number };
}

/**
 * Counts the tokens of a run. A response in progress counts only after it has ended.
 *
 * @param prices prices of models, if any
 */
export const tokensOf = (record: RunRecord, prices: Prices.Prices = Prices.none): RunTokens => {
  const responses = responsesOf(record.attempts);
  const costs = responses.map((attempts, index) => costOf(record, attempts, index === responses.length - 1));
  const price = Prices.priceOf(prices, record.provider.model);
  const of = (kind: Cost["kind"]) => costs.filter((cost) => cost.kind === kind).map(({ tokens }) => tokens);
  const sum = (all: ReadonlyArray<Tokens.TokenCost>) => all.reduce((total, tokens) => total + Tokens.total(tokens), 0);
  const formatMoney = (all: ReadonlyArray<Tokens.TokenCost>) =>
    price === undefined ? 0 : all.reduce((total, tokens) => total + Prices.costOf(price, tokens), 0);
  const used = of("used");
  const wasted = of("wasted");
  return {
    used: sum(used),
    wasted: sum(wasted),
    estimated: record.attempts_omitted > 0 || [...used, ...wasted].some((it) => it.estimated && Tokens.total(it) > 0),
    ...(price === undefined ? {} : { cost_usd: { used: formatMoney(used), wasted: formatMoney(wasted) } }),
  };
};

/**
 * Formats the tokens as a short phrase, for example `about 1 200 tokens, 300 of them wasted, $0.02`; undefined if there are none.
 */
export const tokenWords = ({ cost_usd, estimated, used, wasted }: RunTokens): string | undefined => {
  if (used + wasted === 0) return undefined;
  const about = estimated ? "about " : "";
  const all = `${about}${groupDigits(used + wasted)} tokens`;
  const lost = wasted === 0 ? "" : `, ${wasted === used + wasted ? "all" : `${groupDigits(wasted)} of them`} wasted`;
  return `${all}${lost}${cost_usd === undefined ? "" : `, ${formatDollars(cost_usd.used + cost_usd.wasted)}`}`;
};

/** Formats dollars with two decimals, and amounts below one cent with four. */
export const formatDollars = (usd: number): string => `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;

interface Cost {
  readonly kind: "used" | "wasted" | "open";
  readonly tokens: Tokens.TokenCost;
}

/** Groups the attempts by the response that they read. Attempts that resumed a response belong to the attempt that requested it. */
const responsesOf = (attempts: ReadonlyArray<AttemptRecord>): ReadonlyArray<ReadonlyArray<AttemptRecord>> => {
  const responses: Array<Array<AttemptRecord>> = [];
  for (const attempt of attempts) {
    const last = responses.at(-1);
    if (attempt.request === "resume" && last !== undefined) last.push(attempt);
    else responses.push([attempt]);
  }
  return responses;
};

const costOf = (record: RunRecord, attempts: ReadonlyArray<AttemptRecord>, isLast: boolean): Cost => {
  const facts: ReadonlyArray<AttemptFacts> = attempts.map((attempt) => attempt.facts);
  const failure = failureOf(record, attempts);
  const kind = isLast ? classifyLast(record, failure) : "wasted";
  const request = Math.max(0, ...attempts.map(({ run }) => run?.next_tokens ?? 0));
  const tokens = Tokens.estimateResponse(
    facts,
    kind === "used" ? undefined : failure,
    request === 0 ? undefined : request,
  );
  return { kind, tokens };
};

const failureOf = ({ incidents }: RunRecord, attempts: ReadonlyArray<AttemptRecord>): Failure | undefined =>
  incidents.find(({ attempt }) => attempt === attempts.at(-1)?.attempt)?.failure;

/** Classifies the run's last response: `used` if it was kept. */
const classifyLast = ({ end }: RunRecord, failure: Failure | undefined): Cost["kind"] => {
  if (end === undefined) return failure === undefined ? "open" : "wasted";
  return end.state === "completed" || end.reason === "accepted_partial" || end.reason === "consumer_finished"
    ? "used"
    : "wasted";
};
