/**
 * Describes what was seen while a cluster was played: what clients got, what their provider was asked, which gateways have ended.
 */
import type { Wanted } from "./Client.ts";
import type { Left } from "./Deaths.ts";
import type { Program } from "./Gateways.ts";
import type { Asked } from "./Provider.ts";

/** A life of a gateway that was killed, or told to end. */
export interface Ended {
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
  readonly kills: ReadonlyArray<Ended>;
  /** Gateways that were told to end. */
  readonly stops: ReadonlyArray<Ended>;
  readonly left: ReadonlyArray<Left>;
  /** Runs in the store at the end: all, and those without an end; and questions that anybody was asked. */
  readonly remains: { readonly runs: ReadonlySet<string>; readonly open: number; readonly questions: number };
  /** Gateways that ended by themselves: what they logged last. */
  readonly crashes: ReadonlyArray<string>;
  /** The versions of each gateway's lives, in order. */
  readonly versions: ReadonlyArray<ReadonlyArray<Program["version"]>>;
  /** Version of the tables when all gateways had started, and at the end. */
  readonly schema: { readonly first: number; readonly last: number };
  /** How much slower the machine was than a quiet one, on average: it widens the bars on time. */
  readonly slowness: number;
}
