/**
 * The types of the bench's table.
 */
import type { Spread } from "./Median.ts";

/** A measured row. */
export interface Row {
  readonly what: string;
  /** The value with its unit, for people. */
  readonly value: string;
  /** The bar that the row must meet; undefined if it is only informative. */
  readonly bar: string | undefined;
  readonly verdict: "met" | "missed" | undefined;
  /** The values for programs. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** A group of rows. `--only` selects it by its name. */
export interface Group {
  readonly name: string;
  readonly lines: ReadonlyArray<{ readonly what: string; readonly run: (size: Size) => Promise<ReadonlyArray<Row>> }>;
}

/** The size of the measurements. */
export interface Size {
  readonly quick: boolean;
  /** Number of processes per measurement. */
  readonly processes: number;
}

/** Compares a value with its maximum. */
export const verdict = (value: number, bar: number): "met" | "missed" => (value <= bar ? "met" : "missed");

/** Formats the median and the range: `2.10 × (2.02–2.31)`. */
export const spreadText = ({ max, median, min }: Spread, digits: number, unit: string): string =>
  `${median.toFixed(digits)} ${unit} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
