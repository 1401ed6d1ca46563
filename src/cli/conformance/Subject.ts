/**
 * Sets up an SDK that accepts a `fetch`, bare or with this package.
 */

/** A `fetch` for one turn, closed after it. */
export type TurnFetch = typeof fetch & { readonly close: () => Promise<void> };

/** The name of an SDK's column, and the `fetch` of its turns if it runs with this package. */
export interface SdkOptions {
  /** The column's name. */
  readonly name: string;
  /**
   * Creates the fetch of a turn. The SDK's own retries are then disabled, because two layers of retries multiply. Each turn has its own
   * fetch, because a shared one would take the breaks of all turns for a retry storm and throttle them.
   */
  readonly makeFetch?: () => TurnFetch;
}

/**
 * Runs a turn with the client options of its column, then closes the turn's fetch.
 *
 * @param turn the turn, given `fetch` and `maxRetries`, or neither for a bare SDK
 */
export const withFetch = async (
  { makeFetch }: SdkOptions,
  turn: (client: { readonly fetch?: typeof fetch; readonly maxRetries?: number }) => Promise<void>,
): Promise<void> => {
  const made = makeFetch?.();
  if (made === undefined) return turn({});
  try {
    return await turn({ fetch: made, maxRetries: 0 });
  } finally {
    await made.close();
  }
};
