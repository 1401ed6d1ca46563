/**
 * Distributes work over the copies of the sources.
 */
import type { Copy } from "./Copy.ts";

/** Applies `use` to each item, one at a time per copy, and preserves the order of the items. */
export const inLanes = async <A, B>(
  each: ReadonlyArray<A>,
  copies: ReadonlyArray<Copy>,
  use: (it: A, copy: Copy) => Promise<B>,
): Promise<ReadonlyArray<B>> => {
  const results: Array<B> = [];
  const left = [...each.entries()];
  await Promise.all(
    copies.map(async (copy) => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        results[next[0]] = await use(next[1], copy);
    }),
  );
  return results;
};
