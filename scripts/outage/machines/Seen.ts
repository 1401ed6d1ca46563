/**
 * Describes what World.ts prints.
 */
/** What was seen of a scenario. Times are milliseconds. */
export interface Seen {
  readonly status: number;
  /** The client has the whole answer. */
  readonly whole: boolean;
  /** Requests that the provider saw for it. */
  readonly requests: number;
  /** Each break that the gateway found: by which code, and how long behind the last byte. */
  readonly feltMs: ReadonlyArray<{ readonly code: string; readonly ms: number }>;
  /** Requests that the provider saw since all was well again: how long behind that. */
  readonly nextMs: ReadonlyArray<number>;
}
