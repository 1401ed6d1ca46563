/** What was seen from outside: requests at the provider, responses at clients, and the records at the end. */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { Away } from "./VirtualNet.ts";
import type { Answer, World } from "./World.ts";

/** A request that arrived whole at the provider. */
export interface Asked {
  readonly turn: number;
  /** Number of the request within its turn, from 0. */
  readonly number: number;
  readonly at: number;
  readonly host: string;
  readonly answer: Answer;
  /** The frames of the whole response, as text. */
  readonly frames: ReadonlyArray<string>;
  /** The end of the shown text that the request quotes, if it asks the model to continue. */
  readonly quote: string | undefined;
  /** Time of the response's head. */
  headAt: number | undefined;
  /** Number of whole frames that were written. */
  written: number;
  /** Time at which the response was over for the provider, and how. */
  over: { readonly at: number; readonly by: "script" | "gateway" } | undefined;
}

/** A request of a client and its response. */
export interface Call {
  readonly turn: number;
  readonly number: number;
  readonly at: number;
  status: number | undefined;
  headAt: number | undefined;
  headers: ReadonlyMap<string, string>;
  body: string;
  /**
   * The end that the client saw. `whole`: the message is complete; `ended`, `reset`: the connection closed before; `left`: the client
   * closed it; `closed`: it closed after the finish of its protocol.
   */
  end: { readonly at: number; readonly how: "whole" | "ended" | "reset" | "left" | "closed" } | undefined;
}

/** A read of the newest runs through the API. */
export interface Read {
  readonly at: number;
  readonly runs: ReadonlyArray<{ readonly run_id: string; readonly started_at: number; readonly attempts: number }>;
}

/** Everything that was seen of a world. */
export interface History {
  readonly world: World;
  readonly asked: ReadonlyArray<Asked>;
  readonly calls: ReadonlyArray<Call>;
  readonly connects: ReadonlyMap<string, ReadonlyArray<number>>;
  /** The times in which each host was away. */
  readonly away: ReadonlyMap<string, ReadonlyArray<Away>>;
  readonly records: ReadonlyArray<RunRecord>;
  readonly reads: ReadonlyArray<Read>;
  /** Everything that the store contained at the end, as text; empty for a store in memory. */
  readonly stored: string;
  /** The lines of the log. */
  readonly lines: ReadonlyArray<string>;
  /** Virtual milliseconds that the world lasted. */
  readonly ms: number;
  /** Sockets and timers of the gateway that were open after its end. */
  readonly left: { readonly sockets: number; readonly timers: number };
  /** The reason why the world was given up, for example because virtual time stood still. */
  readonly stuck: string | undefined;
}
