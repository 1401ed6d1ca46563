/**
 * The output of World.ts.
 */
/** The observations of a scenario. Times are in milliseconds. */
export interface Seen {
  readonly status: number;
  /** True if the client received the whole answer. */
  readonly whole: boolean;
  /** Number of its requests that the provider received. */
  readonly requests: number;
  /** Each break that the gateway detected: its code, and the time since the last byte. */
  readonly feltMs: ReadonlyArray<{ readonly code: string; readonly ms: number }>;
  /** For each request after the recovery of the network: the time from the recovery to the request. */
  readonly nextMs: ReadonlyArray<number>;
}
