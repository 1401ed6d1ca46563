/**
 * Describes what the gateway's server tells its page: what it does at the moment, and what has changed.
 */
import { Context, type Effect, type Stream } from "effect";

/** Something happened to a run of this gateway: its record, or what is on the wire, is another than before. */
export interface RunChange {
  readonly run_id: string;
  /** `opened`, `closed`, or the event of the run. */
  readonly what:
    | "opened"
    | "closed"
    | "AttemptStarted"
    | "AttemptDiscarded"
    | "RetryScheduled"
    | "Waiting"
    | "QuestionAsked"
    | "QuestionAnswered"
    | "RunCompleted";
}

/** What the gateway does at the moment. */
export interface TrafficStatus {
  /** Requests that are relayed now, by run. */
  readonly live: ReadonlyArray<string>;
  /** Sockets that are open. */
  readonly connections: number;
  /** A shutdown has begun: no new connection is taken. */
  readonly draining: boolean;
  /** When the server began to listen, in milliseconds since the epoch. */
  readonly since: number;
  /** Requests since then, by what became of them. `refused` are those that no upstream saw. */
  readonly requests: {
    readonly relayed: number;
    readonly passed_through: number;
    readonly refused: number;
  };
  /** Requests since then by the name of the token that they were admitted by; bounded. */
  readonly tokens: Readonly<Record<string, number>>;
}

/** What the server tells its page. */
export class Traffic extends Context.Service<
  Traffic,
  {
    readonly status: Effect.Effect<TrafficStatus>;
    /** Changes from now on. A slow reader loses the oldest, beyond `changesMax`. */
    readonly changes: Stream.Stream<RunChange>;
  }
>()("effect-stream-recovery/gateway/Traffic") {}

/** Changes that wait for one slow reader of `Traffic.changes`. */
export const changesMax = 1_000;
