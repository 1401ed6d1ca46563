/**
 * Copies the values of an incident field by field. A field that is not named here is not exported.
 *
 * Every name passes through `ExportLabels`. Enums and numbers are copied, and the document's schema rejects any other value. Objects from
 * outside are never spread.
 */
import * as Struct from "effect/Struct";
import type { AttemptFacts, Counters, ToolRow } from "../../domain/AttemptFacts.ts";
import { Choice, type Decision } from "../../domain/Decision.ts";
import { type Failure, type Fingerprint, resolve } from "../../domain/Failure.ts";
import { toolRowsMax } from "../../domain/Limits.ts";
import { Budget, type Provider, type RunFacts } from "../../domain/RunFacts.ts";
import type { Counts, SideEffects } from "../../domain/SideEffects.ts";
import type { DecisionInput } from "../../policy/DecisionInput.ts";
import type { ExportLabels } from "./ExportLabel.ts";

/** Maximum token count in an export. The count comes from a provider, and no model uses more tokens. */
export const tokensMax = 999_999_999;

/** Thrown if a record has more items than a recorder keeps. The encoder reports it as `too_large`. */
export class TooMany extends Error {}

/** Copies the input of a decision, with names replaced. */
export const copyInput = (it: DecisionInput, labels: ExportLabels): DecisionInput => ({
  facts: copyFacts(it.facts, labels),
  failure: copyFailure(it.failure, labels),
  run: copyRun(it.run),
  budget: copyBudget(it.budget),
  jitter: it.jitter,
});

/** Copies the facts of an attempt, with names replaced. */
export const copyFacts = (it: AttemptFacts, labels: ExportLabels): AttemptFacts => ({
  delivery: it.delivery,
  progress: it.progress,
  shown: it.shown,
  text_through: it.text_through,
  call_through: it.call_through,
  settled_through: it.settled_through,
  tools: copyRows(it.tools).map(
    (row): ToolRow => ({
      call: labels.of(row.call),
      tool: labels.of(row.tool),
      executor: row.executor,
      effect: row.effect,
      phase: row.phase,
    }),
  ),
  terminal_seen: it.terminal_seen,
  side_effects: sideEffects(it.side_effects),
  counters: copyCounters(it.counters),
});

/** Copies the id and model of a provider, with names replaced. */
export const copyProvider = (it: Provider, labels: ExportLabels): Provider => {
  const { id, model, reasoning } = it;
  return {
    id: labels.of(id),
    ...(model === undefined ? {} : { model: labels.of(model) }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
};

/**
 * Copies a decision, with names replaced.
 *
 * @param because the facts that forced the decision. They are derived again, because a stored sentence is never copied
 */
export const copyDecision = (it: Decision, because: ReadonlyArray<string>, labels: ExportLabels): Decision => {
  const { mode, calls, choices, may_repeat, default_choice } = it;
  return {
    action: it.action,
    rule: it.rule,
    ...(mode === undefined ? {} : { mode }),
    delay_ms: it.delay_ms,
    policy_version: labels.of(it.policy_version),
    because,
    ...(calls === undefined
      ? {}
      : {
          calls: copyRows(calls).map((call) => ({
            call: labels.of(call.call),
            tool: labels.of(call.tool),
            phase: call.phase,
          })),
        }),
    ...(choices === undefined ? {} : { choices: copyChoices(choices) }),
    ...(may_repeat === undefined ? {} : { may_repeat: copyRows(may_repeat).map((call) => labels.of(call)) }),
    ...(default_choice === undefined ? {} : { default_choice }),
  };
};

/** Copies the choices of a question. Throws if there are more choices than kinds of choices. */
export const copyChoices = (choices: ReadonlyArray<Choice>): ReadonlyArray<Choice> => {
  if (choices.length > Choice.literals.length) throw new TooMany();
  return [...choices];
};

const copyRows = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (list.length > toolRowsMax) throw new TooMany();
  return [...list];
};

/** Copies a failure and fills in missing flags, because the flags cannot be derived once a placeholder has replaced the code. */
const copyFailure = (it: Failure, labels: ExportLabels): Failure => {
  const known = resolve(it);
  const { retry_after_ms, status, code, fingerprint } = known;
  const common = {
    retryable: known.retryable,
    not_processed: known.not_processed,
    in_band: known.in_band,
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code: labels.of(code) }),
    ...(fingerprint === undefined ? {} : { fingerprint: printOf(fingerprint, labels) }),
  };
  switch (known.kind) {
    case "transport": {
      const { operation, http2_code } = known;
      return {
        kind: known.kind,
        ...common,
        ...(operation === undefined ? {} : { operation }),
        ...(http2_code === undefined ? {} : { http2_code: labels.of(http2_code) }),
      };
    }
    case "stalled":
      return { kind: known.kind, ...common, clock: known.clock };
    case "rejected":
      return { kind: known.kind, ...common, reason: known.reason };
    case "protocol":
      return { kind: known.kind, ...common, reason: known.reason };
    case "cancelled":
      return { kind: known.kind, ...common, by: known.by };
    default:
      return { kind: known.kind, ...common };
  }
};

const printOf = ({ name, code, depth }: Fingerprint, labels: ExportLabels): Fingerprint => ({
  name: labels.of(name),
  ...(code === undefined ? {} : { code: labels.of(code) }),
  depth,
});

/** Copies the facts of a run: flags and counters. */
export const copyRun = (it: RunFacts): RunFacts => ({
  mode: it.mode,
  user_cancelled: it.user_cancelled,
  lifecycle_closed: it.lifecycle_closed,
  can_continue: it.can_continue,
  continue_text: it.continue_text,
  resumable: it.resumable,
  discardable: it.discardable,
  can_refresh_credentials: it.can_refresh_credentials,
  credential_refreshes: it.credential_refreshes,
  throttle_wait_ms: it.throttle_wait_ms,
  auto_retries: it.auto_retries,
  not_processed_retries: it.not_processed_retries,
  retries_after_shown: it.retries_after_shown,
  retries_after_stall: it.retries_after_stall,
  retries_after_empty: it.retries_after_empty,
  elapsed_ms: it.elapsed_ms,
  path: it.path,
  waited_for_path: it.waited_for_path,
  waited_ms: it.waited_ms,
  cooldown_ms: it.cooldown_ms,
  next_route: it.next_route,
  route_failures: it.route_failures,
  own_route: it.own_route,
  moves: it.moves,
  wasted_tokens: it.wasted_tokens,
  next_tokens: it.next_tokens,
  tokens_estimated: it.tokens_estimated,
  same_partial: it.same_partial,
  group_retries: it.group_retries,
  group_wasted_tokens: it.group_wasted_tokens,
});

// `Object.keys` loses the literal keys.
const limits = Object.keys(Budget.fields) as ReadonlyArray<keyof Budget>;

/** Copies a budget. Each limit is a number or `forever`. */
export const copyBudget = (it: Budget): Budget =>
  Struct.pick(
    it,
    limits.filter((name) => it[name] !== undefined),
  );

const sideEffects = (it: SideEffects | null): SideEffects | null =>
  it === null
    ? null
    : {
        guarded: it.guarded,
        complete: it.complete,
        reason: it.reason,
        runtime: copyCounts(it.runtime),
        provider: copyCounts(it.provider),
      };

const copyCounts = (it: Counts): Counts => ({ read_only: it.read_only, mutating: it.mutating, unknown: it.unknown });

const copyCounters = (it: Counters): Counters => {
  const { input_tokens, output_tokens, rows_folded, suspended_ms } = it;
  return {
    parts: it.parts,
    bytes: it.bytes,
    characters: it.characters,
    ...(input_tokens === undefined ? {} : { input_tokens: Math.min(input_tokens, tokensMax) }),
    ...(output_tokens === undefined ? {} : { output_tokens: Math.min(output_tokens, tokensMax) }),
    ...(rows_folded === undefined ? {} : { rows_folded }),
    ...(suspended_ms === undefined ? {} : { suspended_ms }),
  };
};
