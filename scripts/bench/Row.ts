/**
 * Describes one line of the bench's table.
 */
import type { Spread } from "./Median.ts";

/** A line that was measured. */
export interface Row {
  readonly what: string;
  /** The number and its unit, for people. */
  readonly value: string;
  /** The bar that the line has to hold; nothing where a line only stands beside. */
  readonly bar: string | undefined;
  readonly verdict: "met" | "missed" | undefined;
  /** The same for machines. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** A group of lines with a name that `--only` takes. */
export interface Group {
  readonly name: string;
  readonly lines: ReadonlyArray<{ readonly what: string; readonly run: (size: Size) => Promise<ReadonlyArray<Row>> }>;
}

/** How much is measured. */
export interface Size {
  readonly quick: boolean;
  /** Processes a measurement. */
  readonly processes: number;
}

/** Says whether a number keeps its bar. */
export const verdict = (value: number, bar: number): "met" | "missed" => (value <= bar ? "met" : "missed");

/** The middle, and between which values it stands: `2.10 × (2.02–2.31)`. */
export const spreadText = ({ max, median, min }: Spread, digits: number, unit: string): string =>
  `${median.toFixed(digits)} ${unit} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
