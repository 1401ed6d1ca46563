/**
 * Spans the finite product over which the laws are checked, and orders it by covering pairs.
 *
 * Each dimension is a small partial order, given by its values and the values directly above each of them. A property that holds
 * for every covering pair holds for every pair f ≤ g: in a product of finite orders a path of covering steps, one dimension at a
 * time, leads from f to g, and "not permitted" carries over from step to step. So checking the steps checks all pairs.
 */
import {
  type AttemptFacts,
  Delivery,
  fresh as freshFacts,
  Progress,
  type ToolRow,
} from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import { empty, type SideEffects } from "../../src/domain/SideEffects.ts";
import { foldRows } from "../../src/facts/ToolRows.ts";

/** A dimension: its values, and for each value the indices of those that cover it. */
export interface Dimension<A> {
  readonly values: ReadonlyArray<A>;
  readonly above: ReadonlyArray<ReadonlyArray<number>>;
}

export const chain = <A>(...values: ReadonlyArray<A>): Dimension<A> => ({
  values,
  above: values.map((_, i) => (i + 1 < values.length ? [i + 1] : [])),
});

/** The content that the caller saw, with its time. Only text that was handed over has a time. */
export const seen = chain(
  { shown: "nothing", text_through: 0 },
  { shown: "reasoning", text_through: 0 },
  { shown: "text", text_through: 1 },
  { shown: "text", text_through: 3 },
) satisfies Dimension<Pick<AttemptFacts, "shown" | "text_through">>;

const runtimePhases = [
  "input_started",
  "input_complete",
  "handed_over",
  "dispatched",
  "outcome_unknown",
  "settled",
] as const;
const providerPhases = ["input_started", "input_complete", "settled"] as const;

/** Every row that a call can have, for the given effects. */
export const rowsOf = (effects: ReadonlyArray<ToolRow["effect"]>): ReadonlyArray<ToolRow> =>
  effects.flatMap((effect) => [
    ...runtimePhases.map((phase): ToolRow => ({ call: "a", tool: "t", executor: "runtime", effect, phase })),
    ...providerPhases.map((phase): ToolRow => ({ call: "a", tool: "t", executor: "provider", effect, phase })),
  ]);

const nameOf = (row: ToolRow): string => `${row.executor} ${row.effect} ${row.phase}`;

/** The rows directly above a row: one phase later, or one effect higher. */
const aboveRow = (row: ToolRow): ReadonlyArray<ToolRow> => {
  const phases: ReadonlyArray<ToolRow["phase"]> = row.executor === "runtime" ? runtimePhases : providerPhases;
  const next = phases[phases.indexOf(row.phase) + 1];
  return [
    ...(next === undefined ? [] : [{ ...row, phase: next }]),
    ...(row.effect === "read_only" ? [{ ...row, effect: "mutating" as const }] : []),
  ];
};

/** Ledgers of up to `size` (0 to 2) rows. A fold of two rows of one executor is a single row above them. */
export const ledgers = (size: 0 | 1 | 2): Dimension<ReadonlyArray<ToolRow>> => {
  const rows = rowsOf(["read_only", "mutating"]);
  const values: Array<ReadonlyArray<ToolRow>> = [[]];
  if (size >= 1) for (const row of rows) values.push([row]);
  if (size === 2)
    for (const [i, a] of rows.entries()) for (const b of rows.slice(i)) values.push([a, { ...b, call: "b" }]);
  const keyOf = (ledger: ReadonlyArray<ToolRow>): string => ledger.map(nameOf).sort().join(" + ");
  const indexOf = new Map(values.map((ledger, i) => [keyOf(ledger), i]));
  const covers = (ledger: ReadonlyArray<ToolRow>): ReadonlyArray<ReadonlyArray<ToolRow>> => [
    ...ledger.flatMap((row, i) => aboveRow(row).map((up) => ledger.with(i, up))),
    ...rows.filter((row) => row.phase === "input_started").map((row) => [...ledger, row]),
    ...foldsOf(ledger),
  ];
  return {
    values,
    above: values.map((ledger) =>
      covers(ledger).flatMap((up) => {
        const at = indexOf.get(keyOf(up));
        return at === undefined ? [] : [at];
      }),
    ),
  };
};

const foldsOf = ([a, b]: ReadonlyArray<ToolRow>): ReadonlyArray<ReadonlyArray<ToolRow>> =>
  a === undefined || b === undefined || a.executor !== b.executor ? [] : [[foldRows(a, b)]];

const guarded: SideEffects = { ...empty, guarded: true, runtime: { read_only: 1, mutating: 1, unknown: 0 } };
const hosted: SideEffects = {
  ...guarded,
  complete: false,
  reason: "provider_tools",
  provider: { read_only: 0, mutating: 1, unknown: 0 },
};

/** Snapshots, from the strongest proof to none: guarded; unguarded, or with provider tools; both; missing. */
export const snapshots: Dimension<SideEffects | null> = {
  values: [guarded, { ...guarded, guarded: false }, hosted, { ...hosted, guarded: false }, null],
  above: [[1, 2], [3], [3], [4], []],
};

/** One failure for each way in which the rows can read a failure. */
export const failures: ReadonlyArray<Failure> = [
  { kind: "transport" },
  { kind: "stalled", clock: "idle" },
  { kind: "rate_limited" },
  { kind: "server_error", status: 500 },
  { kind: "server_error", status: 503 },
  { kind: "overloaded", in_band: true, not_processed: false },
  { kind: "rejected", reason: "auth" },
  { kind: "rejected", reason: "invalid_request" },
  { kind: "protocol", reason: "seam_unproven" },
  { kind: "invalid_tool_input" },
  { kind: "empty", retryable: false },
  { kind: "cancelled", by: "provider" },
  { kind: "unknown" },
];

/** Failures that the rows treat like `transport` or `rate_limited` while no budget is spent. */
const alike: ReadonlyArray<Failure["kind"]> = ["stalled", "cancelled"];

/** One failure for each way in which the rows can read a failure while no budget is spent. */
export const distinct: ReadonlyArray<Failure> = failures.filter(
  (failure) => !alike.includes(failure.kind) && failure.status === undefined,
);

/** The failures among them that pass row 7 and do not concern the model's output. */
export const recoverable: ReadonlyArray<Failure> = [
  { kind: "transport" },
  { kind: "rate_limited" },
  { kind: "overloaded", in_band: true, not_processed: false },
  { kind: "rejected", reason: "auth" },
];

/** Every setting of the flags that a decision reads, except cancel and close, which are checked separately (L3). */
export const flags: ReadonlyArray<RunFacts> = [false, true].flatMap((can_continue) =>
  (["ask", "auto"] as const).flatMap((continue_text) =>
    [false, true].flatMap((resumable) =>
      [true, false].map((discardable) => ({
        ...freshRun,
        mode: resumable ? ("continue" as const) : ("first" as const),
        can_refresh_credentials: discardable,
        can_continue,
        continue_text,
        resumable,
        discardable,
      })),
    ),
  ),
);

/**
 * The dimensions of an attempt's facts, one per fact, so that a new fact does not compile until the laws are checked over it.
 * The time of text is spanned with the shown content, and counters are outside the order.
 */
export type FactsDimensions = { readonly [K in keyof AttemptFacts]: Dimension<Partial<AttemptFacts>> };

/** The values of one fact. */
export const fact = <const K extends keyof AttemptFacts>(
  name: K,
  { above, values }: Dimension<AttemptFacts[K]>,
): Dimension<Partial<AttemptFacts>> => ({ above, values: values.map((value) => ({ [name]: value })) });

const elsewhere: Dimension<Partial<AttemptFacts>> = chain({});

/** Every value of every chain, with ledgers of up to one row. */
export const wide: FactsDimensions = {
  delivery: fact("delivery", chain(...Delivery.literals)),
  progress: fact("progress", chain(...Progress.literals)),
  shown: seen,
  text_through: elsewhere,
  call_through: fact("call_through", chain(0, 2)),
  settled_through: fact("settled_through", chain(0, 2)),
  terminal_seen: fact("terminal_seen", chain(false, true)),
  side_effects: fact("side_effects", snapshots),
  tools: fact("tools", ledgers(1)),
  counters: elsewhere,
};

/**
 * Ledgers of up to two rows, with the values of the other chains that the rows distinguish. `deepEnded` spans the terminal marker:
 * for any failure that it settles it decides alone (row 1), which `wide` checks.
 */
export const deep: FactsDimensions = {
  ...wide,
  delivery: fact("delivery", chain("not_sent", "accepted")),
  progress: fact("progress", chain("started", "output")),
  terminal_seen: fact("terminal_seen", chain(false)),
  side_effects: fact("side_effects", chain(guarded, { ...guarded, guarded: false }, null)),
  tools: fact("tools", ledgers(2)),
};

/** `deep` with the marker, for failures of the model's output. */
export const deepEnded: FactsDimensions = { ...deep, terminal_seen: fact("terminal_seen", chain(false, true)) };

/** All facts of a product, and the indices of every covering pair. */
export interface Span {
  readonly facts: ReadonlyArray<AttemptFacts>;
  readonly below: Uint32Array;
  readonly above: Uint32Array;
}

export const span = (of: FactsDimensions): Span => {
  const dimensions = Object.values(of);
  const strides = dimensions.map((_, i) =>
    dimensions.slice(0, i).reduce((size, { values }) => size * values.length, 1),
  );
  const size = dimensions.reduce((product, { values }) => product * values.length, 1);
  const at = (index: number, i: number): number =>
    Math.floor(index / (strides[i] ?? 1)) % (dimensions[i]?.values.length ?? 1);
  const facts = Array.from(
    { length: size },
    (_, index): AttemptFacts => Object.assign({}, freshFacts, ...dimensions.map((d, i) => value(d, at(index, i)))),
  );
  const pairs = facts.flatMap((_, index) =>
    dimensions.flatMap(({ above }, i) =>
      (above[at(index, i)] ?? []).map((up) => [index, index + (up - at(index, i)) * (strides[i] ?? 1)] as const),
    ),
  );
  return { facts, below: Uint32Array.from(pairs, ([f]) => f), above: Uint32Array.from(pairs, ([, g]) => g) };
};

const value = <A>(dimension: Dimension<A>, index: number): A => {
  const found = dimension.values[index];
  if (found === undefined) throw new Error(`a dimension has no value ${index}`);
  return found;
};
