/**
 * Adds up the token counts that a client reads of a response in several attempts: the input of the first, where it was told, and
 * the output of all, less what was said twice. What no provider has told of an attempt that broke is estimated by its text.
 */
import * as Json from "../../domain/Json.ts";
import { ofCharacters } from "../../domain/Prices.ts";

/** Which fields of a protocol hold what. */
export interface UsageFields {
  /** Input; the first that is there counts. */
  readonly input: ReadonlyArray<string>;
  /** Output; the first that is there counts. */
  readonly output: ReadonlyArray<string>;
  readonly total: string;
  /** What is said about the input besides: it stays that of the first attempt. */
  readonly ofInput: ReadonlyArray<string>;
  /** Counts, or objects of counts, that add up. */
  readonly summed: ReadonlyArray<string>;
}

/** What was told of the attempts that a client has read, at one moment. */
export interface UsageSoFar {
  /** The last counts, reduced to the fields of the protocol; undefined where none were told. */
  readonly told: Json.JsonRecord | undefined;
  /** Text and reasoning that have left since, in UTF-16 code units. */
  readonly since: number;
}

/** Follows the token counts of what leaves. */
export class JoinedUsage {
  readonly #fields: UsageFields;
  readonly #counted: ReadonlyArray<string>;
  #soFar: UsageSoFar = { told: undefined, since: 0 };

  constructor(fields: UsageFields) {
    this.#fields = fields;
    this.#counted = [...fields.input, ...fields.output, fields.total, ...fields.summed];
  }

  get soFar(): UsageSoFar {
    return this.#soFar;
  }

  /** Text or reasoning has left. */
  said(characters: number): void {
    this.#soFar = { ...this.#soFar, since: this.#soFar.since + characters };
  }

  /** Counts have left: they are totals so far, so that the last ones count. */
  left(usage: Json.JsonRecord): void {
    const { ofInput, output } = this.#fields;
    const told: Record<string, unknown> = { ...this.#soFar.told };
    for (const name of this.#counted)
      if (usage[name] !== undefined && usage[name] !== null) told[name] = counts(usage[name]);
    for (const name of ofInput) if (usage[name] !== undefined && usage[name] !== null) told[name] = usage[name];
    const isOutput = output.some((name) => Json.natural(usage[name]) !== undefined);
    this.#soFar = { told, since: isOutput ? 0 : this.#soFar.since };
  }

  /**
   * The counts of an attempt as the client reads them.
   *
   * @param before what was told when the attempt began
   * @param usage what the attempt's provider tells
   * @param cut how much of its text stands in front of the seam, in UTF-16 code units
   */
  joined(before: UsageSoFar, usage: Json.JsonRecord, cut: number): Json.JsonRecord {
    const { input, ofInput, output, summed, total } = this.#fields;
    const told = before.told ?? {};
    const next: Record<string, unknown> = { ...usage };
    let grown = 0;
    const first = firstOf(told, input);
    if (first !== undefined) {
      grown += first - (firstOf(usage, input) ?? first);
      for (const name of input) if (Json.natural(usage[name]) !== undefined) next[name] = first;
      for (const name of ofInput) {
        if (told[name] === undefined) delete next[name];
        else next[name] = told[name];
      }
    }
    const said = firstOf(usage, output);
    if (said !== undefined) {
      const all = (firstOf(told, output) ?? 0) + ofCharacters(before.since) + Math.max(0, said - ofCharacters(cut));
      grown += all - said;
      for (const name of output) if (Json.natural(usage[name]) !== undefined) next[name] = all;
    }
    for (const name of summed) {
      next[name] = plus(told[name], usage[name]);
      // A count that stands beside the output is in the total too.
      grown += Json.natural(told[name]) ?? 0;
    }
    const all = Json.natural(usage[total]);
    if (all !== undefined) next[total] = Math.max(0, all + grown);
    return Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined));
  }
}

const firstOf = (usage: Json.JsonRecord, names: ReadonlyArray<string>): number | undefined =>
  names.map((name) => Json.natural(usage[name])).find((count) => count !== undefined);

/** A count, or the counts of an object; nothing else is kept of what a provider tells. */
const counts = (value: unknown): unknown => {
  const record = Json.record(value);
  if (record === undefined) return Json.natural(value);
  return Object.fromEntries(
    Object.entries(record)
      .filter(([, count]) => Json.natural(count) !== undefined)
      .slice(0, 32),
  );
};

/** The sum of two counts, or of two objects field by field; what only one attempt was told of stays as it is. */
const plus = (told: unknown, said: unknown): unknown => {
  if (said === undefined || said === null) return told ?? said;
  const one = Json.natural(told);
  const other = Json.natural(said);
  if (one !== undefined && other !== undefined) return one + other;
  const fields = Json.record(told);
  const next = Json.record(said);
  if (fields === undefined || next === undefined) return said;
  return { ...next, ...Object.fromEntries(Object.entries(fields).map(([name, it]) => [name, plus(it, next[name])])) };
};
