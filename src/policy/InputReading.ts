/**
 * Reads the input of a decision that no schema has checked, and assumes the worst for unknown values.
 *
 * `decide` is typed, but its input may come from plain JavaScript, a cast or a record of a newer version. A valid input is returned
 * unchanged, at the cost of a few comparisons. An invalid value becomes the one that permits least (laws L2 and L8): an unknown value
 * becomes the top of its chain, an invalid counter counts as exhausted, and an invalid limit is zero.
 */
import {
  type AttemptFacts,
  type Delivery,
  fresh,
  type Progress,
  type Shown,
  ToolPhase,
  type ToolRow,
} from "../domain/AttemptFacts.ts";
import * as FailureReading from "../domain/FailureReading.ts";
import * as Json from "../domain/Json.ts";
import { type AttemptMode, type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../domain/RunFacts.ts";
import type { Executor, SideEffects, ToolEffect } from "../domain/SideEffects.ts";
import type { DecisionInput } from "./DecisionInput.ts";

/** Returns an input without its invalid values; the same object if all values are valid. */
export const read = (given: DecisionInput): DecisionInput => {
  const failure = FailureReading.read(given.failure);
  const facts = isFacts(given.facts) ? given.facts : repairFacts(given.facts);
  const run = isRun(given.run) ? given.run : readRun(withDefaults(given.run, newRunFields));
  const budget = isBudget(given.budget) ? given.budget : readBudget(withDefaults(given.budget, newLimits));
  const jitter = isAmount(given.jitter) && given.jitter <= 1 ? given.jitter : 1;
  const same =
    failure === given.failure &&
    facts === given.facts &&
    run === given.run &&
    budget === given.budget &&
    jitter === given.jitter;
  if (same) return given;
  // Neither value of `terminal_seen` would be safe: `true` could report a false success, and `false` could request a response twice.
  const marker = typeof Json.record(given.facts)?.terminal_seen === "boolean";
  return { failure: marker ? failure : { kind: "unknown" }, facts, run, budget, jitter };
};

// Written out value by value and field by field, because every decision runs these checks and takes only about a microsecond.
const isDelivery = (it: unknown): it is Delivery => it === "accepted" || it === "ambiguous" || it === "not_sent";
const isProgress = (it: unknown): it is Progress =>
  it === "output" || it === "started" || it === "reasoning" || it === "none";
const isShown = (it: unknown): it is Shown => it === "nothing" || it === "text" || it === "reasoning";
const isExecutor = (it: unknown): it is Executor => it === "runtime" || it === "provider";
const isEffect = (it: unknown): it is ToolEffect => it === "read_only" || it === "mutating" || it === "unknown";
const phases: ReadonlySet<unknown> = new Set(ToolPhase.literals);
const isPhase = (it: unknown): it is ToolPhase => phases.has(it);
const isMode = (it: unknown): it is AttemptMode =>
  it === "first" || it === "replay" || it === "continue" || it === "resume";

/** True for a count or time that a decision may rely on. */
const isAmount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY;

const isFacts = (it: AttemptFacts): boolean =>
  Json.record(it) !== undefined &&
  isDelivery(it.delivery) &&
  isProgress(it.progress) &&
  isShown(it.shown) &&
  isAmount(it.text_through) &&
  isAmount(it.call_through) &&
  isAmount(it.settled_through) &&
  typeof it.terminal_seen === "boolean" &&
  (it.side_effects === null || isSnapshot(it.side_effects)) &&
  Array.isArray(it.tools) &&
  it.tools.every(isRow);

const isRow = (row: ToolRow): boolean =>
  Json.record(row) !== undefined &&
  typeof row.call === "string" &&
  typeof row.tool === "string" &&
  isExecutor(row.executor) &&
  isEffect(row.effect) &&
  isPhase(row.phase);

const isSnapshot = (it: SideEffects): boolean =>
  Json.record(it) !== undefined &&
  typeof it.guarded === "boolean" &&
  typeof it.complete === "boolean" &&
  typeof it.reason === "string" &&
  isCounts(it.runtime) &&
  isCounts(it.provider);

const isCounts = (it: SideEffects["runtime"]): boolean =>
  Json.record(it) !== undefined && isAmount(it.read_only) && isAmount(it.mutating) && isAmount(it.unknown);

const isRun = (it: RunFacts): boolean =>
  Json.record(it) !== undefined &&
  isMode(it.mode) &&
  (it.continue_text === "ask" || it.continue_text === "auto") &&
  typeof it.user_cancelled === "boolean" &&
  typeof it.lifecycle_closed === "boolean" &&
  typeof it.can_continue === "boolean" &&
  typeof it.resumable === "boolean" &&
  typeof it.discardable === "boolean" &&
  typeof it.can_refresh_credentials === "boolean" &&
  isAmount(it.credential_refreshes) &&
  isAmount(it.throttle_wait_ms) &&
  isAmount(it.auto_retries) &&
  isAmount(it.not_processed_retries) &&
  isAmount(it.retries_after_shown) &&
  isAmount(it.retries_after_stall) &&
  isAmount(it.retries_after_empty) &&
  isAmount(it.elapsed_ms) &&
  isPath(it.path) &&
  typeof it.waited_for_path === "boolean" &&
  (it.next_route === "none" || it.next_route === "up") &&
  typeof it.own_route === "boolean" &&
  isAmount(it.waited_ms) &&
  isAmount(it.cooldown_ms) &&
  isAmount(it.route_failures) &&
  isAmount(it.moves) &&
  isAmount(it.wasted_tokens) &&
  isAmount(it.next_tokens) &&
  typeof it.tokens_estimated === "boolean" &&
  typeof it.same_partial === "boolean" &&
  isAmount(it.group_retries) &&
  isAmount(it.group_wasted_tokens);

const isBudget = (it: Budget): boolean =>
  Json.record(it) !== undefined &&
  isAmount(it.max_auto_retries) &&
  isAmount(it.max_not_processed) &&
  isAmount(it.max_after_shown) &&
  isAmount(it.max_after_stall) &&
  isAmount(it.max_elapsed_ms) &&
  isAmount(it.max_retry_after_ms) &&
  (it.max_outage_ms === "forever" || isAmount(it.max_outage_ms)) &&
  isAmount(it.max_moves) &&
  isLimit(it.max_wasted_tokens) &&
  isLimit(it.max_group_retries) &&
  isLimit(it.max_group_wasted_tokens);

const isPath = (it: unknown): it is RunFacts["path"] => it === "up" || it === "down";

/** True for a limit, which may be omitted. */
const isLimit = (value: unknown): boolean => value === undefined || isAmount(value);

/** A call about which nothing is known, so it may have run and may have done anything. */
const worstRow: ToolRow = { call: "", tool: "", executor: "runtime", effect: "unknown", phase: "outcome_unknown" };

/** The facts that permit least. A new fact needs an entry here and a check in `isFacts`. */
const worstFacts: AttemptFacts = {
  delivery: "accepted",
  progress: "output",
  shown: "text",
  // Text of unknown position counts as if it followed every call, and a call of unknown position as if it preceded all text.
  text_through: Number.MAX_SAFE_INTEGER,
  call_through: 0,
  settled_through: 0,
  tools: [worstRow],
  terminal_seen: false,
  side_effects: null,
  counters: fresh.counters,
};

const worstRun: RunFacts = {
  // `first` permits least: a continuation that fails permanently becomes a question, and every other mode stops.
  mode: "first",
  user_cancelled: true,
  lifecycle_closed: true,
  can_continue: false,
  continue_text: "ask",
  resumable: false,
  discardable: false,
  can_refresh_credentials: false,
  credential_refreshes: Number.MAX_SAFE_INTEGER,
  throttle_wait_ms: Number.MAX_SAFE_INTEGER,
  auto_retries: Number.MAX_SAFE_INTEGER,
  not_processed_retries: Number.MAX_SAFE_INTEGER,
  retries_after_shown: Number.MAX_SAFE_INTEGER,
  retries_after_stall: Number.MAX_SAFE_INTEGER,
  retries_after_empty: Number.MAX_SAFE_INTEGER,
  elapsed_ms: Number.MAX_SAFE_INTEGER,
  path: "down",
  waited_for_path: false,
  waited_ms: Number.MAX_SAFE_INTEGER,
  cooldown_ms: Number.MAX_SAFE_INTEGER,
  next_route: "none",
  route_failures: 0,
  own_route: false,
  moves: Number.MAX_SAFE_INTEGER,
  wasted_tokens: Number.MAX_SAFE_INTEGER,
  next_tokens: Number.MAX_SAFE_INTEGER,
  tokens_estimated: true,
  same_partial: true,
  group_retries: Number.MAX_SAFE_INTEGER,
  group_wasted_tokens: Number.MAX_SAFE_INTEGER,
};

const worstBudget: Budget = {
  max_auto_retries: 0,
  max_not_processed: 0,
  max_after_shown: 0,
  max_after_stall: 0,
  max_elapsed_ms: 0,
  max_retry_after_ms: 0,
  max_outage_ms: 0,
  max_moves: 0,
  max_wasted_tokens: 0,
  max_group_retries: 0,
  max_group_wasted_tokens: 0,
};

/** Defaults of the fields that the first versions did not have. An old caller may still omit these fields. */
const newRunFields: Partial<RunFacts> = {
  path: freshRun.path,
  waited_for_path: freshRun.waited_for_path,
  waited_ms: freshRun.waited_ms,
  cooldown_ms: freshRun.cooldown_ms,
  next_route: freshRun.next_route,
  route_failures: freshRun.route_failures,
  own_route: freshRun.own_route,
  moves: freshRun.moves,
  wasted_tokens: freshRun.wasted_tokens,
  next_tokens: freshRun.next_tokens,
  tokens_estimated: freshRun.tokens_estimated,
  retries_after_empty: freshRun.retries_after_empty,
  same_partial: freshRun.same_partial,
  group_retries: freshRun.group_retries,
  group_wasted_tokens: freshRun.group_wasted_tokens,
};

const newLimits: Partial<Budget> = {
  max_outage_ms: defaultBudget.max_outage_ms,
  max_moves: defaultBudget.max_moves,
};

/** Fills in omitted fields. A value that is not an object is returned as it is. */
const withDefaults = <A extends object>(given: A, missing: Partial<A>): A =>
  Json.record(given) === undefined ? given : { ...missing, ...given };

const readRun = (given: RunFacts): RunFacts => {
  if (isRun(given)) return given;
  const run = repair(given, worstRun, isRun);
  const it = Json.record(given);
  const isPathKnown = isPath(it?.path);
  if (isPathKnown && isAmount(it?.cooldown_ms)) return run;
  // The path or the cooldown is now a guess. A guess must not move the run, and a guessed path must not keep its counters low.
  return { ...run, next_route: "none", elapsed_ms: isPathKnown ? run.elapsed_ms : worstRun.elapsed_ms };
};

const readBudget = (given: Budget): Budget => (isBudget(given) ? given : repair(given, worstBudget, isBudget));

/** Keeps each valid field and replaces the others by the worst value. */
const repair = <A extends object>(given: A, worst: A, fits: (it: A) => boolean): A => {
  // A value that is not an object has no fields.
  const it: Partial<A> = Json.record(given) === undefined ? {} : given;
  // `Object.keys` loses the literal keys of the worst value.
  const names = Object.keys(worst) as ReadonlyArray<string> as ReadonlyArray<keyof A>;
  const believed = names.filter((name) => fits({ ...worst, [name]: it[name] }));
  return { ...worst, ...Object.fromEntries(believed.map((name) => [name, it[name]])) };
};

/** Repairs each row of the ledger. If the executor of a call is unknown, so are its effect and its outcome. */
const repairFacts = (given: AttemptFacts): AttemptFacts => {
  const facts = repair(given, worstFacts, isFacts);
  const rows: unknown = Json.record(given)?.tools;
  return Array.isArray(rows) ? { ...facts, tools: rows.map(repairRow) } : facts;
};

const repairRow = (given: ToolRow): ToolRow => {
  const row = repair(given, worstRow, isRow);
  return isExecutor(Json.record(given)?.executor) ? row : { ...worstRow, call: row.call, tool: row.tool };
};
