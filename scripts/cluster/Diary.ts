/**
 * Describes what was seen while a cluster was played: what clients got, what their provider was asked, which gateways were killed.
 */
import type { Wanted } from "./Client.ts";
import type { Left } from "./Deaths.ts";
import type { Asked } from "./Provider.ts";

/** A kill of a gateway. */
export interface Kill {
  readonly at: number;
  /** Its process was gone: until then its kernel still took connections. */
  readonly goneAt: number;
  readonly node: number;
  readonly life: number;
}

/** All that was seen. Times are milliseconds. */
export interface Diary {
  readonly leaseMs: number;
  readonly wanted: ReadonlyArray<Wanted>;
  readonly asked: ReadonlyArray<Asked>;
  readonly kills: ReadonlyArray<Kill>;
  readonly left: ReadonlyArray<Left>;
  /** Runs in the store at the end: all, those without an end, and questions that anybody was asked. */
  readonly remains: { readonly runs: number; readonly open: number; readonly questions: number };
  /** Gateways that ended by themselves: what they logged last. */
  readonly crashes: ReadonlyArray<string>;
}
