/**
 * Counts the outcomes of runs by rule, provider and model, and the discarded output.
 *
 * Each count reads only changes: what an ended run contributes is cached, unfinished runs are read again, and paging stops at the first
 * page without changes.
 */
import { Clock, Effect, Schema, Semaphore } from "effect";
import { Action, Rule } from "../../domain/Decision.ts";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { none, type Prices } from "../../domain/Prices.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { isIncomplete, openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import { hasRecovered, isCancelled } from "../../story/RunStatus.ts";
import { type RunTokens, tokensOf } from "../../story/RunTokens.ts";

/** Maximum number of counted runs. The newest runs are counted. */
export const totalsRunsMax = 10_000;

/** Maximum number of unfinished runs that one count reads again one by one. The next count reads the others. */
export const totalsUnsettledMax = 500;

/** Maximum number of rows by provider and model. The rows with the highest number of runs are kept. */
export const totalsProvidersMax = 100;

/** Interval at which everything is counted again, in milliseconds, so that the totals no longer contain pruned runs. */
export const totalsRecountMs = 600_000;

const pageRuns = 50;

const Wasted = Schema.Struct({
  input_tokens: Schema.Natural,
  output_tokens: Schema.Natural,
  characters: Schema.Natural,
  bytes: Schema.Natural,
}).annotate({ description: "Size of attempts that a replay has replaced; tokens only if the provider reported them" });

const Spent = Schema.Struct({
  used: Schema.Natural,
  wasted: Schema.Natural,
  estimated: Schema.Boolean,
  cost_usd: Schema.optionalKey(Schema.Struct({ used: Schema.Finite, wasted: Schema.Finite })),
}).annotate({
  description:
    "Tokens of delivered and of broken responses, reported or estimated, and their cost if models have prices",
});

/** Totals over all recorded runs or, if there are more, over the newest `totalsRunsMax`. */
export const Totals = Schema.Struct({
  runs: Schema.Natural,
  /** Number of runs that a process owns now. */
  live: Schema.Natural,
  /** Number of runs with at least one incident. */
  broken: Schema.Natural,
  completed: Schema.Natural,
  /** Number of runs that broke and were completed without a question. */
  recovered: Schema.Natural,
  /** Number of runs that asked a question. */
  asked: Schema.Natural,
  open_questions: Schema.Natural,
  stopped: Schema.Natural,
  wasted: Wasted,
  tokens: Spent,
  by_rule: Schema.Array(Schema.Struct({ rule: Rule, action: Action, decisions: Schema.Natural })),
  by_provider: Schema.Array(
    Schema.Struct({
      provider: Label,
      model: Schema.optionalKey(Label),
      runs: Schema.Natural,
      recovered: Schema.Natural,
      asked: Schema.Natural,
      stopped: Schema.Natural,
      wasted_tokens: Schema.Natural,
    }),
  ),
  /** Start of the oldest counted run; wall clock, in milliseconds since the epoch. */
  since: Schema.optionalKey(Milliseconds),
  /** True if every recorded run is counted, false if only the newest `totalsRunsMax` are. */
  complete: Schema.Boolean,
});
export type Totals = typeof Totals.Type;

/**
 * Counts the runs of a recorder.
 *
 * @param prices prices of models
 * @returns an effect that computes the current totals, one caller at a time
 */
export const make = (
  recorder: RunRecorder["Service"],
  prices: Prices = none,
): Effect.Effect<Effect.Effect<Totals, RecorderError>> =>
  Effect.suspend(() => {
    const shares = new Map<string, RunShare>();
    let countedAt = Number.NEGATIVE_INFINITY;
    let complete = false;
    const look = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      if (now - countedAt >= totalsRecountMs) {
        shares.clear();
        countedAt = now;
        complete = false;
      }
      complete = (yield* readNew(recorder, shares, prices)) || complete;
      complete = !forgetOldest(shares) && complete;
      return sum([...shares.values()], complete);
    });
    // A failed count may leave a gap, so the next count starts from the beginning.
    const recount = Effect.sync(() => {
      countedAt = Number.NEGATIVE_INFINITY;
    });
    const one = Semaphore.makeUnsafe(1);
    return Effect.succeed(one.withPermits(1)(Effect.tapError(look, () => recount)));
  });

interface RunShare {
  readonly record: Pick<RunRecord, "provider" | "started_at">;
  readonly settled: boolean;
  readonly live: boolean;
  readonly broken: boolean;
  readonly completed: boolean;
  readonly recovered: boolean;
  readonly asked: boolean;
  readonly open: boolean;
  readonly stopped: boolean;
  readonly rules: ReadonlyArray<{ readonly rule: Rule; readonly action: Action }>;
  readonly tokens: RunTokens;
  readonly wasted: typeof Wasted.Type;
}

/** Reads new records. Returns true if the oldest recorded run was reached. */
const readNew = Effect.fnUntraced(function* (
  recorder: RunRecorder["Service"],
  shares: Map<string, RunShare>,
  prices: Prices,
) {
  const read = new Set<string>();
  let before: string | undefined;
  let reachedEnd = false;
  while (read.size < totalsRunsMax) {
    const page = yield* recorder.runs({ limit: pageRuns, ...(before === undefined ? {} : { before }) });
    const known = page.every((it) => isIncomplete(it) || shares.get(it.run_id)?.settled === true);
    for (const record of page) {
      read.add(record.run_id);
      updateShares(shares, record, prices);
    }
    reachedEnd = page.length < pageRuns;
    before = page.at(-1)?.run_id;
    if (known || reachedEnd) break;
  }
  const again = [...shares].filter(([runId, { settled }]) => !settled && !read.has(runId)).slice(0, totalsUnsettledMax);
  for (const [runId] of again) {
    const record = yield* recorder.run(runId);
    // Moves the run to the end of the map, so that each unfinished run is read again in turn.
    shares.delete(runId);
    if (record !== undefined) updateShares(shares, record, prices);
  }
  return reachedEnd;
});

/** Updates the contribution of a run to the totals, or removes it while the run's record may be incomplete. */
const updateShares = (shares: Map<string, RunShare>, record: RunRecord, prices: Prices): void => {
  if (isIncomplete(record)) shares.delete(record.run_id);
  else shares.set(record.run_id, shareOf(record, prices));
};

const forgetOldest = (shares: Map<string, RunShare>): boolean => {
  if (shares.size <= totalsRunsMax) return false;
  const oldest = [...shares].sort(([, a], [, b]) => a.record.started_at - b.record.started_at);
  for (const [runId] of oldest.slice(0, shares.size - totalsRunsMax)) shares.delete(runId);
  return true;
};

const shareOf = (record: RunRecord, prices: Prices): RunShare => {
  const { attempts, end, incidents, provider, questions, started_at, state } = record;
  const cancelled = isCancelled(record);
  const completed = end?.state === "completed" && !cancelled;
  const replaced = attempts.filter((_, index) => attempts[index + 1]?.mode === "replay").map((it) => it.facts.counters);
  const total = (field: keyof typeof Wasted.Type) => replaced.reduce((all, it) => all + (it[field] ?? 0), 0);
  return {
    record: { provider, started_at },
    settled: end !== undefined,
    live: state === "live",
    broken: incidents.length > 0,
    completed,
    recovered: hasRecovered(record) && questions.length === 0,
    asked: questions.length > 0,
    open: openQuestion(record) !== undefined,
    stopped: end?.state === "stopped" || cancelled,
    rules: incidents.map(({ decision: { action, rule } }) => ({ rule, action })),
    tokens: tokensOf(record, prices),
    wasted: {
      input_tokens: total("input_tokens"),
      output_tokens: total("output_tokens"),
      characters: total("characters"),
      bytes: total("bytes"),
    },
  };
};

const sum = (shares: ReadonlyArray<RunShare>, complete: boolean): Totals => {
  const count = (of: (share: RunShare) => boolean) => shares.filter(of).length;
  const sumWasted = (field: keyof typeof Wasted.Type) => shares.reduce((all, share) => all + share.wasted[field], 0);
  return {
    runs: shares.length,
    live: count(({ live }) => live),
    broken: count(({ broken }) => broken),
    completed: count(({ completed }) => completed),
    recovered: count(({ recovered }) => recovered),
    asked: count(({ asked }) => asked),
    open_questions: count(({ open }) => open),
    stopped: count(({ stopped }) => stopped),
    wasted: {
      input_tokens: sumWasted("input_tokens"),
      output_tokens: sumWasted("output_tokens"),
      characters: sumWasted("characters"),
      bytes: sumWasted("bytes"),
    },
    tokens: spentOf(shares.map(({ tokens }) => tokens)),
    by_rule: rulesOf(shares),
    by_provider: providersOf(shares),
    ...(shares.length === 0 ? {} : { since: Math.min(...shares.map(({ record }) => record.started_at)) }),
    complete,
  };
};

const spentOf = (all: ReadonlyArray<RunTokens>): typeof Spent.Type => {
  const total = (of: (tokens: RunTokens) => number) => all.reduce((sum, tokens) => sum + of(tokens), 0);
  return {
    used: total(({ used }) => used),
    wasted: total(({ wasted }) => wasted),
    estimated: all.some(({ estimated }) => estimated),
    ...(all.every(({ cost_usd }) => cost_usd === undefined)
      ? {}
      : {
          cost_usd: {
            used: total(({ cost_usd }) => cost_usd?.used ?? 0),
            wasted: total(({ cost_usd }) => cost_usd?.wasted ?? 0),
          },
        }),
  };
};

const rulesOf = (shares: ReadonlyArray<RunShare>): Totals["by_rule"] => {
  const rows = groupBy(
    shares.flatMap(({ rules }) => rules),
    ({ action, rule }) => `${rule} ${action}`,
  ).map(({ first, all }) => ({ ...first, decisions: all.length }));
  return rows.sort((a, b) => b.decisions - a.decisions || (a.rule < b.rule ? -1 : 1));
};

const providersOf = (shares: ReadonlyArray<RunShare>): Totals["by_provider"] =>
  groupBy(shares, ({ record: { provider } }) => JSON.stringify([provider.id, provider.model]))
    .map(({ all, first }) => {
      const { id, model } = first.record.provider;
      return {
        provider: id,
        ...(model === undefined ? {} : { model }),
        runs: all.length,
        recovered: all.filter(({ recovered }) => recovered).length,
        asked: all.filter(({ asked }) => asked).length,
        stopped: all.filter(({ stopped }) => stopped).length,
        wasted_tokens: all.reduce((sum, { wasted }) => sum + wasted.input_tokens + wasted.output_tokens, 0),
      };
    })
    .sort((a, b) => b.runs - a.runs)
    .slice(0, totalsProvidersMax);

const groupBy = <A>(
  values: ReadonlyArray<A>,
  key: (value: A) => string,
): Array<{ readonly first: A; readonly all: Array<A> }> => {
  const groups = new Map<string, { readonly first: A; readonly all: Array<A> }>();
  for (const value of values) {
    const group = groups.get(key(value));
    if (group === undefined) groups.set(key(value), { first: value, all: [value] });
    else group.all.push(value);
  }
  return [...groups.values()];
};
