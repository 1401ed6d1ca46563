/**
 * `stream-recovery backtest`: decides every stored incident again and shows what another policy or budget would change.
 */
import { Console, Effect, Option, Result, Schema, Stream } from "effect";
import { Command, Flag } from "effect/cli";
import { Rule } from "../domain/Decision.ts";
import * as Json from "../domain/Json.ts";
import { Budget } from "../domain/RunFacts.ts";
import type { RecoveryPolicy } from "../policy/RecoveryPolicy.ts";
import { streamRuns } from "../recorder/RunPages.ts";
import { isIncomplete } from "../recorder/RunRecord.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import { parseDuration } from "../recorder/retention/Duration.ts";
import { check, decideBy } from "./backtest/Redecision.ts";
import { backtestText } from "./backtest/Report.ts";
import { Tally } from "./backtest/Tally.ts";
import { exitCodesHelp, failing } from "./command/CommandFailed.ts";
import { policyFlag } from "./command/Policy.ts";
import { dbFlag, jsonFlag, withStore } from "./command/Store.ts";
import type { Screen } from "./terminal/Screen.ts";

const fail = failing("backtest");

/** Decides stored incidents again, to show what another policy or budget would change. */
export const backtestCommand = Command.make(
  "backtest",
  {
    db: dbFlag,
    policy: policyFlag,
    budget: Flag.String("budget").pipe(
      Flag.withDescription("Budget limits to change, as JSON or as name=number; repeatable (max_auto_retries=5)"),
      Flag.atLeast(0),
    ),
    since: Flag.String("since").pipe(
      Flag.withDescription("Only incidents since this time: 7d, 12h, 2026-11-01"),
      Flag.optional,
    ),
    rule: Flag.String("rule").pipe(
      Flag.withDescription("Only incidents decided by this rule; `stream-recovery policy` lists the rules"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  ({ db, ...options }) => withStore("backtest", db, (screen) => backtest(options, screen)),
).pipe(
  Command.withDescription(
    `Decide every stored incident again: by its own policy, which must give the stored decision (otherwise exit code 1), and by another policy or budget, to show what would change and at what risk.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Decide stored incidents again, and show what another policy would change"),
  Command.withExamples([
    {
      command: "stream-recovery backtest --policy strict",
      description: "Show what the strict preset would have asked",
    },
    {
      command: "stream-recovery backtest --budget max_auto_retries=0 --since 7d",
      description: "Show the effect of allowing no retries",
    },
  ]),
);

interface BacktestOptions {
  readonly policy: RecoveryPolicy;
  readonly budget: ReadonlyArray<string>;
  readonly since: Option.Option<string>;
  readonly rule: Option.Option<string>;
  readonly json: boolean;
}

/** Decides the stored incidents again, prints the report, and fails if a stored decision cannot be reproduced. */
export const backtest = Effect.fn("cli.backtest")(function* (options: BacktestOptions, screen: Screen) {
  const limits = parseBudget(options.budget);
  if (Result.isFailure(limits)) return yield* fail("refused", `--budget: ${limits.failure}`);
  const since = Option.isNone(options.since) ? 0 : parseMoment(options.since.value, screen.now);
  if (since === undefined)
    return yield* fail("refused", "--since: expected a duration, for example 7d, or a date, for example 2026-11-01");
  const named = Option.getOrUndefined(options.rule);
  const rule = Rule.literals.find((literal) => literal === named);
  if (named !== undefined && rule === undefined) {
    return yield* fail(
      "refused",
      `--rule: ${JSON.stringify(named)} is not a rule; stream-recovery policy lists the rules`,
    );
  }
  const { totals } = yield* tallyRuns(options.policy, limits.success, since, rule);
  if (totals.incidents === 0) return yield* fail("negative", "no incident is on record, or none matches");
  const changed = Object.entries(limits.success).map(([name, value]) => `${name}=${value}`);
  const against = `the ${options.policy.name} policy${changed.length === 0 ? "" : ` with ${changed.join(", ")}`}`;
  yield* Console.log(
    options.json
      ? JSON.stringify(
          { policy: options.policy.name, policy_version: options.policy.version, budget: limits.success, ...totals },
          null,
          2,
        )
      : backtestText(totals, against, screen),
  );
  if (totals.violations > 0) {
    return yield* fail("negative", "a stored incident no longer gives its stored decision (law L9)");
  }
});

const page = 200;

const tallyRuns = Effect.fnUntraced(function* (
  policy: RecoveryPolicy,
  limits: Partial<Budget>,
  since: number,
  rule: Rule | undefined,
) {
  const recorder = yield* RunRecorder;
  const tally = new Tally();
  yield* Stream.runForEach(streamRuns(recorder, { broken: true }, page), (record) =>
    Effect.sync(() => {
      if (isIncomplete(record)) return;
      const chosen = record.incidents.filter(
        (it) => it.at >= since && (rule === undefined || it.decision.rule === rule),
      );
      if (chosen.length > 0) tally.countRun();
      for (const incident of chosen) tally.add(incident, check(incident), decideBy(incident, policy, limits));
    }),
  );
  return tally;
});

const decodeBudget = Schema.decodeUnknownResult(Budget, { onExcessProperty: "error" });

/** Parses and checks the `--budget` values. A later value replaces an earlier one. */
const parseBudget = (typed: ReadonlyArray<string>): Result.Result<Partial<Budget>, string> => {
  const limits: Record<string, unknown> = {};
  for (const text of typed) {
    const [, name, number] = /^(\w+)=(\d+)$/.exec(text) ?? [];
    const given = name === undefined ? Json.record(Json.parse(text)?.json) : { [name]: Number(number) };
    if (given === undefined) return Result.fail(`expected name=number or JSON, got ${JSON.stringify(text)}`);
    for (const [key, value] of Object.entries(given)) {
      if (!Object.hasOwn(Budget.fields, key))
        return Result.fail(`${key}: expected one of ${Object.keys(Budget.fields).join(", ")}`);
      if (Result.isFailure(decodeBudget({ [key]: value })))
        return Result.fail(`${key}: expected a number of at least 0`);
      limits[key] = value;
    }
  }
  // Each key was checked against the budget's fields and each value was decoded.
  return Result.succeed(limits as Partial<Budget>);
};

/**
 * Parses a time: a duration before now, or an ISO date.
 *
 * @returns milliseconds since the epoch; undefined if it is neither
 */
export const parseMoment = (text: string, now: number): number | undefined => {
  const ago = parseDuration(text);
  if (ago !== undefined) return now - ago;
  const at = /^\d{4}-\d\d-\d\d(T.*)?$/.test(text) ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
};
