/**
 * Replaces values that a caller, an observer or a provider gives with edge cases of their type: NaN, infinite, negative, broken, too
 * long, missing.
 */
import type { Failure } from "../../src/domain/Failure.ts";
import type { CallSignal, Observation } from "../../src/domain/Observation.ts";
import type { Dice } from "./Dice.ts";

const numbers = ["NaN", "Infinity", "-Infinity", "-1", "1.5", "1e300"] as const;
const texts = ["long", "empty"] as const;
const gone = ["missing"] as const;

/** Each field with its edge values. */
const fields = {
  "budget.max_auto_retries": numbers,
  "budget.max_not_processed": numbers,
  "budget.max_after_shown": numbers,
  "budget.max_after_stall": numbers,
  "budget.max_elapsed_ms": numbers,
  "budget.max_retry_after_ms": numbers,
  "clocks.idle": numbers,
  "clocks.first_progress": numbers,
  "clocks.silence": numbers,
  "clocks.attempt": numbers,
  "clocks.run": numbers,
  "provider.id": texts,
  "provider.model": texts,
  retryOf: texts,
  sizeOf: numbers,
  bytes: numbers,
  "part.characters": numbers,
  "part.input_tokens": numbers,
  "part.finish": texts,
  "part.calls": gone,
  "call.ordinal": numbers,
  "call.choice": numbers,
  "call.id": texts,
  "call.tool": texts,
  "failure.code": texts,
  "failure.retry_after_ms": numbers,
  "failure.status": numbers,
} as const satisfies Record<string, ReadonlyArray<string>>;

/** A field that can have an edge value. */
export type EdgeField = keyof typeof fields;

/** An edge value by name, because scenarios are JSON. */
type EdgeValue = (typeof numbers)[number] | (typeof texts)[number] | (typeof gone)[number];

export interface Edge {
  readonly field: EdgeField;
  readonly value: EdgeValue;
}

// The keys of a constant object are its own fields.
const names = Object.keys(fields) as [EdgeField, ...Array<EdgeField>];

/** Draws a field and a value. */
export const edgeOf = (dice: Dice): Edge => {
  const field = dice.pick(names);
  const [first, ...more] = fields[field];
  return { field, value: dice.pick<EdgeValue>([first, ...more]) };
};

/** The number that a name denotes. */
const numberOf = (value: EdgeValue): number => Number(value);

/** The text that a name denotes, longer than any label. */
const textOf = (value: EdgeValue): string => (value === "long" ? "x".repeat(300) : "");

export class Edges {
  readonly #edges: ReadonlyMap<EdgeField, EdgeValue>;

  constructor(edges: ReadonlyArray<Edge>) {
    this.#edges = new Map(edges.map(({ field, value }) => [field, value]));
  }

  /** The edge value of a field, or `plain`. */
  number(field: EdgeField, plain: number): number {
    const value = this.#edges.get(field);
    return value === undefined ? plain : numberOf(value);
  }

  /** The edge values of a group of numbers, by their own names. */
  numbers(group: "budget" | "clocks"): Readonly<Record<string, number>> {
    return Object.fromEntries(
      [...this.#edges].flatMap(([field, value]) => {
        const [of, name] = field.split(".");
        return of === group && name !== undefined ? [[name, numberOf(value)]] : [];
      }),
    );
  }

  /** A text field with its name, if it has an edge value. */
  text<K extends string>(field: EdgeField, name: K): { readonly [key in K]?: string } {
    const value = this.#edges.get(field);
    if (value === undefined) return {};
    const set: { [key in K]?: string } = {};
    set[name] = textOf(value);
    return set;
  }

  /** True if the scenario gives weights to held parts. */
  get weighs(): boolean {
    return this.#edges.has("sizeOf");
  }

  /** Applies the edge values to an observation. */
  says(says: Observation): Observation {
    if (this.#edges.size === 0) return says;
    const { calls, characters, failure, finish, usage } = says;
    const tokens = this.number("part.input_tokens", usage?.input_tokens ?? 0);
    return {
      ...says,
      characters: characters === 0 ? 0 : this.number("part.characters", characters),
      calls: calls.map((call) => this.#call(call)),
      ...(failure === undefined ? {} : { failure: this.failure(failure) }),
      ...(usage === undefined ? {} : { usage: { ...usage, input_tokens: tokens } }),
      ...(finish === undefined ? {} : this.text("part.finish", "finish")),
    };
  }

  /** An observation as the observer returns it: it may omit `calls`, which its type does not allow. */
  observed(says: Observation): Observation {
    if (!this.#edges.has("part.calls")) return says;
    const { calls: _, ...rest } = says;
    // An untyped observer returns this.
    return rest as Observation;
  }

  failure(failure: Failure): Failure {
    if (this.#edges.size === 0) return failure;
    const retryAfter = this.#edges.has("failure.retry_after_ms");
    const status = this.#edges.has("failure.status");
    // A caller's own classifier may return fields that a kind does not have.
    return {
      ...failure,
      ...this.text("failure.code", "code"),
      ...(retryAfter ? { retry_after_ms: this.number("failure.retry_after_ms", 0) } : {}),
      ...(status ? { status: this.number("failure.status", 0) } : {}),
    } as Failure;
  }

  #call(call: CallSignal): CallSignal {
    return {
      ...call,
      ordinal: this.number("call.ordinal", call.ordinal),
      choice: this.number("call.choice", call.choice),
      ...this.text("call.id", "id"),
      ...this.text("call.tool", "tool"),
    };
  }
}
