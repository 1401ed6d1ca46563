/**
 * Holds what is known about one attempt at a provider: the facts that a decision is taken on.
 *
 * Facts only grow within an attempt (law L1): every field is a chain, a flag, a counter or a growing ledger. The order of
 * the literals is the order of growth; `atMost` compares two of them.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { Label, Milliseconds } from "./Limits.ts";
import { Executor, empty, SideEffects, ToolEffect } from "./SideEffects.ts";

/** How far the request got. `not_sent` only where a transport proves that no byte was written. */
export const Delivery = Schema.Literals(["not_sent", "ambiguous", "accepted"]);
export type Delivery = typeof Delivery.Type;

/** What the provider produced. Lifecycle events, usage and pings are `started`, which is not progress. */
export const Progress = Schema.Literals(["none", "started", "reasoning", "output"]);
export type Progress = typeof Progress.Type;

/** What the caller was handed (law L4). Refusals, images and audio count as text. */
export const Shown = Schema.Literals(["nothing", "reasoning", "text"]);
export type Shown = typeof Shown.Type;

/**
 * How far a call got. Runtime calls are counted when handed over and pass all six; provider-executed calls are counted
 * when decoded and pass `input_started`, `input_complete`, `settled`.
 */
export const ToolPhase = Schema.Literals([
  "input_started",
  "input_complete",
  "handed_over",
  "dispatched",
  "outcome_unknown",
  "settled",
]);
export type ToolPhase = typeof ToolPhase.Type;

/** One row of the ledger. `call` is unique in its attempt (`choice.ordinal`); provider ids are labels and not kept here. */
export const ToolRow = Schema.Struct({
  call: Label,
  tool: Label,
  executor: Executor,
  effect: ToolEffect,
  phase: ToolPhase,
});
export type ToolRow = typeof ToolRow.Type;

/** Plain numbers about an attempt, for reports; no decision reads them. */
export const Counters = Schema.Struct({
  parts: Schema.Natural,
  bytes: Schema.Natural,
  characters: Schema.Natural,
  input_tokens: Schema.optionalKey(Schema.Natural),
  output_tokens: Schema.optionalKey(Schema.Natural),
  /** Ledger rows that were folded into their join because the ledger was full. */
  rows_folded: Schema.optionalKey(Schema.Natural),
  /** Wall-clock jumps (a suspended laptop) noticed while the attempt ran, and the milliseconds they took. */
  suspended_ms: Schema.optionalKey(Milliseconds),
});
export type Counters = typeof Counters.Type;

const zero: Counters = { parts: 0, bytes: 0, characters: 0 };

/** The facts of one attempt. Left-out fields decode to those of a fresh attempt; `side_effects: null` means missing. */
export const AttemptFacts = Schema.Struct({
  delivery: Delivery.pipe(Schema.withDecodingDefaultKey(Effect.succeed("not_sent" as const))),
  progress: Progress.pipe(Schema.withDecodingDefaultKey(Effect.succeed("none" as const))),
  shown: Shown.pipe(Schema.withDecodingDefaultKey(Effect.succeed("nothing" as const))),
  /** When the last text part was handed over; 0 = never. The three `_through` fields share one growing counter. */
  text_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** When the last call began (decoded). */
  call_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** When the last runtime call settled. */
  settled_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  tools: Schema.Array(ToolRow).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  terminal_seen: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  side_effects: Schema.NullOr(SideEffects).pipe(Schema.withDecodingDefaultKey(Effect.succeed(empty))),
  counters: Counters.pipe(Schema.withDecodingDefaultKey(Effect.succeed(zero))),
});
export type AttemptFacts = typeof AttemptFacts.Type;

/** The facts of an attempt that has not begun, with the snapshot of an exposed nothing. */
export const fresh: AttemptFacts = Schema.decodeSync(AttemptFacts)({});

/** The key of a call within its attempt. */
export const callKey = (choice: number, ordinal: number): string => `${choice}.${ordinal}`;

type Chain<A extends string> = { readonly literals: ReadonlyArray<A> };

/**
 * The place of a value in a growing chain. A word that the chain does not have (of a newer version, or a slip of plain
 * JavaScript) stands above all of them, so that no join loses it and nothing is permitted for its sake.
 *
 * @param chain the schema whose literals stand in growing order
 */
const rank = <A extends string>(chain: Chain<A>, value: A): number => {
  const at = chain.literals.indexOf(value);
  return at < 0 ? chain.literals.length : at;
};

/**
 * Compares two values of a growing chain.
 *
 * @param chain the schema whose literals stand in growing order
 * @returns whether `a` is at or below `b`
 */
export const atMost = <A extends string>(chain: Chain<A>, a: A, b: A): boolean => rank(chain, a) <= rank(chain, b);

/** The higher of two values of a growing chain. */
export const higher = <A extends string>(chain: Chain<A>, a: A, b: A): A => (atMost(chain, a, b) ? b : a);
