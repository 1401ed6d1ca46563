/**
 * Says what many measurements say together.
 */

/** The value in the middle, or between the two in the middle; NaN of none. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
};

/** The value that a share of all values is at or below, by nearest rank; NaN of none. */
export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};

/** Several processes' word on one number. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** Gives the least, the middle and the greatest value. */
export const spread = (values: ReadonlyArray<number>): Spread => ({
  min: Math.min(...values),
  median: median(values),
  max: Math.max(...values),
});
