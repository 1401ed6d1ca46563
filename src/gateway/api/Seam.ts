/**
 * What stands between the gateway's server and its page: the server asks `Page` for every path under `/recovery` and
 * `/metrics`, and tells `Traffic` what it does.
 *
 * The server has done its part before it asks: a token was checked and its `/t/TOKEN` prefix cut off, Host and Origin were
 * checked, body and header limits hold. A page's links must therefore be relative.
 */
import { Context, type Effect, type Stream } from "effect";

/**
 * Serves `/recovery`, `/recovery/…` and `/metrics`. Left out, these paths are not found.
 */
export class Page extends Context.Service<
  Page,
  {
    /**
     * Answers a request. It may run as long as a live feed does: it is interrupted, and the response's body cancelled, when
     * the client goes away or the gateway stops.
     *
     * @param request its URL has the path without a token's prefix; its body was read already and is bounded
     * @returns undefined where there is nothing at this path
     */
    readonly handle: (request: Request) => Effect.Effect<Response | undefined>;
  }
>()("effect-stream-recovery/gateway/Page") {}

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
