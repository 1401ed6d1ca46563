/**
 * Says what a run has cost: tokens of the response that stands and of those that broke, as told or as estimated, and money where
 * its model has a price.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Failure } from "../domain/Failure.ts";
import * as Prices from "../domain/Prices.ts";
import * as Tokens from "../facts/Tokens.ts";
import type { AttemptRecord, RunRecord } from "../recorder/RunRecord.ts";
import { grouped } from "./Times.ts";

/** What a run has cost. */
export interface RunTokens {
  /** Of the response that stands. */
  readonly used: number;
  /** Of responses that broke. */
  readonly wasted: number;
  /** A part of the numbers is estimated: the provider did not tell it. */
  readonly estimated: boolean;
  /** In US dollars; left out where the model has no price. */
  readonly cost_usd?: { readonly used: number; readonly wasted: number };
}

/**
 * The tokens of a run. A response that is under way counts when it has ended.
 *
 * @param prices of models, where there are any
 */
export const tokensOf = (record: RunRecord, prices: Prices.Prices = Prices.none): RunTokens => {
  const responses = responsesOf(record.attempts);
  const costs = responses.map((attempts, index) => costOf(record, attempts, index === responses.length - 1));
  const price = Prices.priceOf(prices, record.provider.model);
  const of = (kind: Cost["kind"]) => costs.filter((cost) => cost.kind === kind).map(({ tokens }) => tokens);
  const sum = (all: ReadonlyArray<Tokens.TokenCost>) => all.reduce((total, tokens) => total + Tokens.total(tokens), 0);
  const money = (all: ReadonlyArray<Tokens.TokenCost>) =>
    price === undefined ? 0 : all.reduce((total, tokens) => total + Prices.costOf(price, tokens), 0);
  const used = of("used");
  const wasted = of("wasted");
  return {
    used: sum(used),
    wasted: sum(wasted),
    estimated: record.attempts_omitted > 0 || [...used, ...wasted].some((it) => it.estimated && Tokens.total(it) > 0),
    ...(price === undefined ? {} : { cost_usd: { used: money(used), wasted: money(wasted) } }),
  };
};

/** The tokens in a short phrase, such as `about 1 200 tokens, 300 of them wasted, $0.02`; undefined where there are none. */
export const tokenWords = ({ cost_usd, estimated, used, wasted }: RunTokens): string | undefined => {
  if (used + wasted === 0) return undefined;
  const about = estimated ? "about " : "";
  const all = `${about}${grouped(used + wasted)} tokens`;
  const lost = wasted === 0 ? "" : `, ${wasted === used + wasted ? "all" : `${grouped(wasted)} of them`} wasted`;
  return `${all}${lost}${cost_usd === undefined ? "" : `, ${dollars(cost_usd.used + cost_usd.wasted)}`}`;
};

/** Cents to two digits, and less than a cent to four. */
export const dollars = (usd: number): string => `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;

interface Cost {
  readonly kind: "used" | "wasted" | "open";
  readonly tokens: Tokens.TokenCost;
}

/** The attempts by the response that they read: the one that asked for it, and those that resumed it. */
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
  const kind = isLast ? standing(record, failure) : "wasted";
  const request = Math.max(0, ...attempts.map(({ run }) => run?.next_tokens ?? 0));
  const tokens = Tokens.ofResponse(facts, kind === "used" ? undefined : failure, request === 0 ? undefined : request);
  return { kind, tokens };
};

const failureOf = ({ incidents }: RunRecord, attempts: ReadonlyArray<AttemptRecord>): Failure | undefined =>
  incidents.find(({ attempt }) => attempt === attempts.at(-1)?.attempt)?.failure;

/** Whether the run's last response stands. */
const standing = ({ end }: RunRecord, failure: Failure | undefined): Cost["kind"] => {
  if (end === undefined) return failure === undefined ? "open" : "wasted";
  return end.state === "completed" || end.reason === "accepted_partial" || end.reason === "consumer_finished"
    ? "used"
    : "wasted";
};
