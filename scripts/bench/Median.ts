/**
 * Statistics of repeated measurements.
 */

/** The middle value, or the mean of the two middle values; NaN for an empty list. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
};

/** The value that a share of all values does not exceed, by nearest rank; NaN for an empty list. */
export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};

/** The range of one number over several processes. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** Returns the minimum, the median and the maximum. */
export const spread = (values: ReadonlyArray<number>): Spread => ({
  min: Math.min(...values),
  median: median(values),
  max: Math.max(...values),
});
