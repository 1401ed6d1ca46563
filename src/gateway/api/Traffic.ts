/**
 * Describes what the gateway's server tells its page: what it does at the moment, and what has changed.
 */
import { Context, type Effect, Schema, type Stream } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";

/** What happens to a run: `left` by its client, it goes on; `attached` by one; or an event of the run. */
export const runChanges = [
  ...(["opened", "closed", "left", "attached", "AttemptStarted", "AttemptDiscarded", "RetryScheduled"] as const),
  ...(["Waiting", "QuestionAsked", "QuestionAnswered", "Continued", "RunCompleted"] as const),
] as const;

/** Something happened to a run of this gateway: its record, or what is on the wire, is another than before. */
export interface RunChange {
  readonly run_id: string;
  readonly what: (typeof runChanges)[number];
}

/** A run that goes on without its client; times are wall clock, milliseconds since the epoch. */
export interface AbsentRun {
  readonly run_id: string;
  /** When its client left. */
  readonly since: number;
  /** When it is cancelled, unless a client attaches before. */
  readonly until: number;
}

/** A run whose response may be attached to. */
export const AttachableRun = Schema.Struct({
  run_id: Label,
  /** The name of the upstream. */
  upstream: Schema.String,
  /** The name of the token that its request was admitted by, where the gateway has tokens. */
  token: Schema.optionalKey(Schema.String),
  /** `read`: a client reads it. `left`: it goes on without a client. `ended`: its response is kept. */
  state: Schema.Literals(["read", "left", "ended"]),
  /** Bytes of its response that have gone to a client. */
  bytes: Schema.Natural,
  began_at: Milliseconds,
  /** It outlives its client by so long. */
  linger_ms: Milliseconds,
  /** When its last client left. */
  left_at: Schema.optionalKey(Milliseconds),
  /** When it is cancelled, or its response forgotten, if no client comes back. */
  expires_at: Schema.optionalKey(Milliseconds),
  /** Clients that have attached to it. */
  attached: Schema.Natural,
});
export type AttachableRun = typeof AttachableRun.Type;

/** What the gateway does at the moment. */
export interface TrafficStatus {
  /** Requests that are relayed now, by run. */
  readonly live: ReadonlyArray<string>;
  /** Runs of them that go on without their client; left out where none may. */
  readonly absent?: ReadonlyArray<AbsentRun>;
  /** Runs whose responses may be attached to, the oldest first; left out where none may. */
  readonly attachable?: ReadonlyArray<AttachableRun>;
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
    /** Of this process alone, where `status` is of several. */
    readonly own?: Effect.Effect<TrafficStatus>;
    /** Changes from now on. A slow reader loses the oldest, beyond `changesMax`. */
    readonly changes: Stream.Stream<RunChange>;
  }
>()("effect-stream-recovery/gateway/Traffic") {}

/** Changes that wait for one slow reader of `Traffic.changes`. */
export const changesMax = 1_000;
