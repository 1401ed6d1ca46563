/**
 * Says how a shipped SDK is judged: bare, or with this package under it.
 */

/** A `fetch` that was made for one turn, and its end. */
export type TurnFetch = typeof fetch & { readonly close: () => Promise<void> };

/** How an SDK that takes a `fetch` is set up. */
export interface SdkOptions {
  /** The name of its column. */
  readonly name: string;
  /**
   * Makes the fetch of a turn, and the SDK then makes no retries of its own: two layers of retries multiply. A turn has one
   * for itself, as the breaks of all turns together are a storm that a shared one would throttle.
   */
  readonly makeFetch?: () => TurnFetch;
}

/**
 * Runs a turn with the options of its client, and closes the turn's fetch behind it.
 *
 * @param options the column's
 * @param turn what to do with `fetch` and `maxRetries`, or neither
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
