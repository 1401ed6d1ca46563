/**
 * Holds the facts about one attempt on which a decision is based.
 *
 * Facts only grow within an attempt (law L1). Every field is a chain (one of several literals, listed in the order of growth), a flag, a
 * counter or a growing ledger. `atMost` compares two literals of a chain.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { Label, Milliseconds } from "./Limits.ts";
import { Executor, empty, SideEffects, ToolEffect } from "./SideEffects.ts";

/** Progress of the request. `not_sent` requires proof by the transport that no byte was written. */
export const Delivery = Schema.Literals(["not_sent", "ambiguous", "accepted"]);
export type Delivery = typeof Delivery.Type;

/** Output of the provider. Lifecycle events, usage and pings are `started`, which is not progress. */
export const Progress = Schema.Literals(["none", "started", "reasoning", "output"]);
export type Progress = typeof Progress.Type;

/** Output that was handed to the caller (law L4). Refusals, images and audio count as text. */
export const Shown = Schema.Literals(["nothing", "reasoning", "text"]);
export type Shown = typeof Shown.Type;

/**
 * Progress of a call. Runtime calls are counted when handed over and pass all six phases; provider-executed calls are counted
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

/** One row of the ledger. `call` is unique in its attempt (`choice.ordinal`). Provider ids are labels and are not kept here. */
export const ToolRow = Schema.Struct({
  call: Label,
  tool: Label,
  executor: Executor,
  effect: ToolEffect,
  phase: ToolPhase,
});
export type ToolRow = typeof ToolRow.Type;

/** Plain numbers about an attempt, for reports. No decision reads them. */
export const Counters = Schema.Struct({
  parts: Schema.Natural,
  bytes: Schema.Natural,
  characters: Schema.Natural,
  input_tokens: Schema.optionalKey(Schema.Natural),
  output_tokens: Schema.optionalKey(Schema.Natural),
  /** Calls without a ledger row of their own. If the ledger is full, further calls share one row per executor. */
  rows_folded: Schema.optionalKey(Schema.Natural),
  /** Time lost to wall-clock jumps (a suspended laptop) while the attempt ran, in milliseconds. */
  suspended_ms: Schema.optionalKey(Milliseconds),
});
export type Counters = typeof Counters.Type;

const zero: Counters = { parts: 0, bytes: 0, characters: 0 };

/**
 * Facts of one attempt. Omitted fields decode to those of a fresh attempt; `side_effects: null` means that the request's tools were not
 * counted.
 */
export const AttemptFacts = Schema.Struct({
  delivery: Delivery.pipe(Schema.withDecodingDefaultKey(Effect.succeed("not_sent" as const))),
  progress: Progress.pipe(Schema.withDecodingDefaultKey(Effect.succeed("none" as const))),
  shown: Shown.pipe(Schema.withDecodingDefaultKey(Effect.succeed("nothing" as const))),
  /**
   * Position of the last text handed over, in the order of text, calls and settles; 0 if none. The three `_through` fields share one
   * counter.
   */
  text_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** Position at which the last call began, as decoded. */
  call_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** Position at which the last runtime call settled. */
  settled_through: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  tools: Schema.Array(ToolRow).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  terminal_seen: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  side_effects: Schema.NullOr(SideEffects).pipe(Schema.withDecodingDefaultKey(Effect.succeed(empty))),
  counters: Counters.pipe(Schema.withDecodingDefaultKey(Effect.succeed(zero))),
});
export type AttemptFacts = typeof AttemptFacts.Type;

/** Facts of an attempt that has not begun, for a request that exposes no tools. */
export const fresh: AttemptFacts = Schema.decodeSync(AttemptFacts)({});

/** Returns the key of a call within its attempt. */
export const callKey = (choice: number, ordinal: number): string => `${choice}.${ordinal}`;

type Chain<A extends string> = { readonly literals: ReadonlyArray<A> };

/**
 * Returns the position of a value in a growing chain. An unknown value (from a newer version or plain JavaScript) ranks above all others.
 * So every join keeps it, and it permits nothing.
 *
 * @param chain schema with literals in growing order
 */
const rank = <A extends string>(chain: Chain<A>, value: A): number => {
  const at = chain.literals.indexOf(value);
  return at < 0 ? chain.literals.length : at;
};

/**
 * Compares two values of a growing chain.
 *
 * @param chain schema with literals in growing order
 * @returns true if `a` is at or below `b`
 */
export const isAtMost = <A extends string>(chain: Chain<A>, a: A, b: A): boolean => rank(chain, a) <= rank(chain, b);

/** Returns the higher of two values of a growing chain. */
export const pickHigher = <A extends string>(chain: Chain<A>, a: A, b: A): A => (isAtMost(chain, a, b) ? b : a);
