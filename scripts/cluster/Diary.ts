/**
 * The observations of one play: what clients received, what their provider was asked, and which gateways ended.
 */
import type { Wanted } from "./Client.ts";
import type { Left } from "./Deaths.ts";
import type { Program } from "./Gateways.ts";
import type { Asked } from "./Provider.ts";

/** A gateway process that was killed or stopped. */
export interface Ended {
  readonly at: number;
  /** The time at which its process had exited. Until then its kernel still accepted connections. */
  readonly goneAt: number;
  readonly node: number;
  readonly life: number;
}

/** Everything that was observed during a play. Times are in milliseconds. */
export interface Diary {
  readonly leaseMs: number;
  readonly wanted: ReadonlyArray<Wanted>;
  readonly asked: ReadonlyArray<Asked>;
  readonly kills: ReadonlyArray<Ended>;
  /** Gateways that were stopped with SIGTERM. */
  readonly stops: ReadonlyArray<Ended>;
  readonly left: ReadonlyArray<Left>;
  /** The store at the end: the ids of all runs, the number without an end, and the number of questions ever asked. */
  readonly remains: { readonly runs: ReadonlySet<string>; readonly open: number; readonly questions: number };
  /** The last log lines of each gateway that ended unasked. */
  readonly crashes: ReadonlyArray<string>;
  /** The versions of each gateway's successive processes, in order. */
  readonly versions: ReadonlyArray<ReadonlyArray<Program["version"]>>;
  /** Version of the database schema after all gateways had started, and at the end. */
  readonly schema: { readonly first: number; readonly last: number };
  /** Average slowdown of this machine relative to a quiet one. Time limits are multiplied by it. */
  readonly slowness: number;
}
