/**
 * Adds up the token counts that a client reads for a response made in several attempts: the input of the first attempt, if reported, and
 * the output of all attempts without the repeated text. The output of an attempt that broke without reporting counts is estimated from its
 * text.
 */
import * as Json from "../../domain/Json.ts";
import { estimateTokens } from "../../domain/Prices.ts";

/** The names of a protocol's usage fields. */
export interface UsageFields {
  /** Input counts; the first one that is present applies. */
  readonly input: ReadonlyArray<string>;
  /** Output counts; the first one that is present applies. */
  readonly output: ReadonlyArray<string>;
  readonly total: string;
  /** Details of the input, which are always taken from the first attempt. */
  readonly ofInput: ReadonlyArray<string>;
  /** Counts, or objects of counts, that are added up. */
  readonly summed: ReadonlyArray<string>;
}

/** The usage that a client has read for the attempts so far. */
export interface UsageSoFar {
  /** The last counts, reduced to the protocol's fields; undefined if no counts were reported. */
  readonly told: Json.JsonRecord | undefined;
  /** Text and reasoning that were sent after the last output count, in UTF-16 code units. */
  readonly since: number;
}

/** Tracks the token counts and the text that are sent to the client. */
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

  /** Records the length of text or reasoning that was sent, in UTF-16 code units. */
  recordCharacters(characters: number): void {
    this.#soFar = { ...this.#soFar, since: this.#soFar.since + characters };
  }

  /** Records counts that were sent. They are running totals, so the last ones apply. */
  recordCounts(usage: Json.JsonRecord): void {
    const { ofInput, output } = this.#fields;
    const told: Record<string, unknown> = { ...this.#soFar.told };
    for (const name of this.#counted)
      if (usage[name] !== undefined && usage[name] !== null) told[name] = keepCounts(usage[name]);
    for (const name of ofInput) if (usage[name] !== undefined && usage[name] !== null) told[name] = usage[name];
    const isOutput = output.some((name) => Json.natural(usage[name]) !== undefined);
    this.#soFar = { told, since: isOutput ? 0 : this.#soFar.since };
  }

  /**
   * Returns the counts that the client reads in place of those of one attempt: the counts of the whole response.
   *
   * @param before the usage at the start of the attempt
   * @param usage the counts of the attempt's provider
   * @param cut length of the attempt's text before the seam, in UTF-16 code units
   */
  join(before: UsageSoFar, usage: Json.JsonRecord, cut: number): Json.JsonRecord {
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
      const all = (firstOf(told, output) ?? 0) + estimateTokens(before.since) + Math.max(0, said - estimateTokens(cut));
      grown += all - said;
      for (const name of output) if (Json.natural(usage[name]) !== undefined) next[name] = all;
    }
    for (const name of summed) {
      next[name] = addCounts(told[name], usage[name]);
      // A count that is reported in addition to the output is also part of the total.
      grown += Json.natural(told[name]) ?? 0;
    }
    const all = Json.natural(usage[total]);
    if (all !== undefined) next[total] = Math.max(0, all + grown);
    return Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined));
  }
}

const firstOf = (usage: Json.JsonRecord, names: ReadonlyArray<string>): number | undefined =>
  names.map((name) => Json.natural(usage[name])).find((count) => count !== undefined);

/** Keeps a count, or the counts of an object, and drops everything else. */
const keepCounts = (value: unknown): unknown => {
  const record = Json.record(value);
  if (record === undefined) return Json.natural(value);
  return Object.fromEntries(
    Object.entries(record)
      .filter(([, count]) => Json.natural(count) !== undefined)
      .slice(0, 32),
  );
};

/** Adds two counts, or two objects field by field. A value that only one attempt reported stays unchanged. */
const addCounts = (told: unknown, said: unknown): unknown => {
  if (said === undefined || said === null) return told ?? said;
  const one = Json.natural(told);
  const other = Json.natural(said);
  if (one !== undefined && other !== undefined) return one + other;
  const fields = Json.record(told);
  const next = Json.record(said);
  if (fields === undefined || next === undefined) return said;
  return {
    ...next,
    ...Object.fromEntries(Object.entries(fields).map(([name, it]) => [name, addCounts(it, next[name])])),
  };
};
