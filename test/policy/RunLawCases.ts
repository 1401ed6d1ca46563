/**
 * The runs and facts over which the laws are checked for a run's path, routes and budgets.
 */
import { describe, it } from "@effect/vitest";
import { Delivery, Progress } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { noGrowth, type Suite, share } from "./Growth.ts";
import {
  chain,
  type FactsDimensions,
  fact,
  ledgers,
  failures as ofRows,
  seen,
  snapshots,
  span,
  wide,
} from "./Product.ts";

/** The chains that moves and counters read besides the rows, with one or two values for the rows' other chains. */
const dimensions: FactsDimensions = {
  ...wide,
  delivery: fact("delivery", chain(...Delivery.literals)),
  progress: fact("progress", chain(...Progress.literals)),
  shown: seen,
  call_through: fact("call_through", chain(0)),
  settled_through: fact("settled_through", chain(2)),
  side_effects: fact("side_effects", { values: [snapshots.values[0] ?? null, null], above: [[1], []] }),
  tools: fact("tools", oneCall()),
};
export const product = span(dimensions);

/** No call, and a mutating call in every phase. */
function oneCall() {
  const { values } = ledgers(1);
  const rows = values.filter(([row]) => row === undefined || (row.executor === "runtime" && row.effect === "mutating"));
  return chain(...rows);
}

/** Failures with every combination that rows, moves and counters read. */
export const failures: ReadonlyArray<Failure> = [
  ...ofRows,
  { kind: "truncated" },
  { kind: "protocol", reason: "damaged_frame" },
  { kind: "rate_limited", retry_after_ms: 9_000 },
  { kind: "rejected", reason: "quota" },
  { kind: "rejected", reason: "not_found" },
  { kind: "transport", code: "ENOTFOUND" },
  { kind: "server_error", status: 501 },
  { kind: "stalled", clock: "run" },
  { kind: "refused" },
  { kind: "model_length" },
  { kind: "empty" },
  { kind: "caller_failed" },
];

/** States of a run: its path, an announced wait, and another route. */
export const places: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { path: "down" },
  { cooldown_ms: 3_000 },
  { cooldown_ms: 9_000 },
  { path: "down", waited_ms: 120_000 },
  ...[{}, { path: "down" as const }, { cooldown_ms: 9_000 }, { route_failures: 1 }, { own_route: true, moves: 1 }].map(
    (place) => ({ ...place, next_route: "up" as const }),
  ),
];

/** Spent budgets of a run: nothing, a part, or all of it. */
export const spendings: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { auto_retries: 3 },
  { not_processed_retries: 3 },
  { not_processed_retries: 3, auto_retries: 3 },
  { not_processed_retries: 3, auto_retries: 3, waited_for_path: true },
  { retries_after_shown: 1, retries_after_stall: 1 },
  { retries_after_empty: 1 },
  { same_partial: true },
  { wasted_tokens: 900, next_tokens: 101 },
  { group_retries: 4 },
  { throttle_wait_ms: 60_001 },
];

/** Limits of every budget of a run. */
export const budget: Budget = { ...defaultBudget, max_moves: 2, max_wasted_tokens: 1_000, max_group_retries: 4 };

/** Flags of the runtime that the rows read. */
export const runtimes: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { discardable: false },
  { can_continue: true, continue_text: "auto" },
  { mode: "continue", resumable: true, can_refresh_credentials: true },
];

/** Every combination of the given parts of a run. */
export const cross = (...parts: ReadonlyArray<ReadonlyArray<Partial<RunFacts>>>): ReadonlyArray<RunFacts> =>
  parts.reduce<ReadonlyArray<RunFacts>>(
    (runs, part) => runs.flatMap((run) => part.map((it) => ({ ...run, ...it }))),
    [freshRun],
  );

/** Selects every `step`th element of a product. */
export const every = (index: number, step: number): boolean => index % step === 0;

/** Checks that permission shrinks, with a share of the runs for each suite. */
export const permissionShrinksIn = (suite: Suite): void => {
  describe(`L2 permission shrinks, under the runs of the ${suite} suite`, () => {
    it("path, cooldown, routes, moves, tokens and group, with a budget that is whole and one that is spent", () => {
      const runs = share(cross(runtimes, places, spendings.slice(0, 6)), suite);
      noGrowth(RecoveryPolicy.default, product, failures, runs, budget);
    });
  });
};
