/**
 * Describes the server's current activity and its changes, for the page.
 */
import { Context, type Effect, Schema, type Stream } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";

/**
 * Kinds of change: `left`: the client has left and the run continues; `attached`: a client has attached; the others are events of the run.
 */
export const runChanges = [
  ...(["opened", "closed", "left", "attached", "AttemptStarted", "AttemptDiscarded", "RetryScheduled"] as const),
  ...(["Waiting", "QuestionAsked", "QuestionAnswered", "Continued", "RunCompleted"] as const),
] as const;

/** A change of one of this gateway's runs. */
export interface RunChange {
  readonly run_id: string;
  readonly what: (typeof runChanges)[number];
}

/** A run that continues without its client. Times are wall clock, in milliseconds since the epoch. */
export interface AbsentRun {
  readonly run_id: string;
  readonly since: number;
  /** Time at which the run is cancelled if no client attaches before. */
  readonly until: number;
}

/** A run to whose response a client can attach. */
export const AttachableRun = Schema.Struct({
  run_id: Label,
  upstream: Schema.String,
  /** Name of the token that admitted its request, if the gateway has tokens. */
  token: Schema.optionalKey(Schema.String),
  /** `read`: a client is connected. `left`: the run continues without a client. `ended`: the run has ended and its response is kept. */
  state: Schema.Literals(["read", "left", "ended"]),
  /** Bytes of the response that were sent to a client. */
  bytes: Schema.Natural,
  began_at: Milliseconds,
  /** Time for which the run continues after its client has left. */
  linger_ms: Milliseconds,
  /** Time at which its last client left. */
  left_at: Schema.optionalKey(Milliseconds),
  /** Time at which the run is cancelled, or its response is dropped, unless a client returns. */
  expires_at: Schema.optionalKey(Milliseconds),
  /** Number of times that a client has attached. */
  attached: Schema.Natural,
});
export type AttachableRun = typeof AttachableRun.Type;

/** The gateway's activity at one moment. */
export interface TrafficStatus {
  /** Ids of the runs that are relayed now. */
  readonly live: ReadonlyArray<string>;
  /** Runs that continue without their client; missing if lingering is not available. */
  readonly absent?: ReadonlyArray<AbsentRun>;
  /** Runs to whose responses a client can attach, oldest first; missing if lingering is not available. */
  readonly attachable?: ReadonlyArray<AttachableRun>;
  readonly connections: number;
  /** True after a shutdown has begun. No new connection is accepted then. */
  readonly draining: boolean;
  /** Time at which the server started to listen, in milliseconds since the epoch. */
  readonly since: number;
  /** Number of requests since the server started to listen, by outcome. Refused requests reached no upstream. */
  readonly requests: {
    readonly relayed: number;
    readonly passed_through: number;
    readonly refused: number;
  };
  /** Number of requests since the server started to listen, by the name of their token. The number of names is bounded. */
  readonly tokens: Readonly<Record<string, number>>;
}

/** Reports the gateway's activity to its page and its metrics. */
export class Traffic extends Context.Service<
  Traffic,
  {
    readonly status: Effect.Effect<TrafficStatus>;
    /** Traffic of this process alone, if `status` covers several. */
    readonly own?: Effect.Effect<TrafficStatus>;
    /** Future changes. A slow reader loses its oldest pending changes beyond `changesMax`. */
    readonly changes: Stream.Stream<RunChange>;
  }
>()("effect-stream-recovery/gateway/Traffic") {}

/** Maximum number of pending changes per reader of `Traffic.changes`. */
export const changesMax = 1_000;
