/** Defines the request for admission to a path, its outcome, and the status of a path. */
import type * as Effect from "effect/Effect";
import type { PathWay } from "./Path.ts";

/** Scope of a cooldown. It applies to the requests of one path, credential (by digest, "" for all) and model. */
export interface Scope {
  readonly path: string;
  readonly credential: string;
  readonly model: string | undefined;
}

/** State of a path and its cooldowns, as it applies to a request of a scope. */
export interface Standing {
  /** `down` also while waiting requests are released after an outage, because a request must then wait for its turn. */
  readonly path: "up" | "down";
  /** True if the path works again. It counts as down while waiting requests are released in batches. */
  readonly returning?: boolean;
  /** Remaining announced wait, in milliseconds. A wait that was announced to another run counts for at most `maxRetryAfterMs`. */
  readonly cooldownMs: number;
}

/** Wait that is reported to a waiting run. Times are in wall-clock milliseconds since the epoch. */
export interface Wait {
  readonly for: "path" | "cooldown";
  readonly since: number;
  readonly until?: number;
}

/** A provider's refusal that announces a wait. */
export interface Refusal {
  readonly kind: "rate_limited" | "overloaded";
  readonly waitMs: number;
  /** True if the wait applies to this request alone and does not delay others. */
  readonly onlyThis: boolean;
}

/** A request that is ready to be sent. */
export interface Admission {
  readonly scope: Scope;
  /** Maximum announced wait that this run observes, in milliseconds. */
  readonly maxRetryAfterMs: number;
  /** Maximum time that the request waits, in milliseconds; infinite for no limit. */
  readonly withinMs: number;
  /** Called in the step in which a wait begins or changes. Must not throw. */
  readonly onWait: (wait: Wait) => void;
  /**
   * Called in the step that releases the request. The given function must be called once the request has a response or has ended; until then
   * the request occupies a slot in its batch. Further calls of that function have no effect.
   */
  readonly hold: (leave: () => void) => void;
}

/** Outcome of an admission, and the time that the request waited, in milliseconds. */
export type Admitted =
  | { readonly _tag: "admitted"; readonly waitedMs: number }
  /**
   * The time limit was reached (then `waitMs` is 0), or would be reached before the announced wait ends (then `waitMs` is the rest of that
   * wait).
   */
  | { readonly _tag: "too_long"; readonly for: "path" | "cooldown"; readonly waitedMs: number; readonly waitMs: number }
  /** The maximum number of requests is already waiting, or the paths were closed. */
  | { readonly _tag: "full"; readonly waitedMs: number };

/** Status of a path, for a person. Times are wall-clock times, in milliseconds since the epoch. */
export interface PathStatus {
  readonly path: string;
  /** `returning`: the path works again, and waiting runs are released in batches. */
  readonly state: "up" | "down" | "returning";
  readonly since: number;
  readonly reached: boolean;
  /** Probes since the path went down. */
  readonly probes: number;
  readonly nextProbeAt?: number;
  /** Code of the last failed probe or connect. */
  readonly code?: string;
  /** Runs that wait for the path or for one of its cooldowns. */
  readonly waiting: number;
  readonly cooldowns: ReadonlyArray<{
    readonly model?: string;
    /** First eight characters of the credential's digest. */
    readonly credential?: string;
    readonly kind: "rate_limited" | "overloaded";
    readonly until: number;
  }>;
}

/** Operations on the paths of a process. */
export interface PathsService {
  /** Registers how a path can be probed. */
  readonly attach: (path: string, way: PathWay) => void;
  /** Marks a path as reached, because the record of an earlier process shows that it was. */
  readonly markReached: (path: string) => void;
  readonly hasReached: (path: string) => boolean;
  readonly standing: (scope: Scope, maxRetryAfterMs: number) => Standing;
  /**
   * Returns true if a request may be sent at once without admission, because the path is up and has neither a cooldown nor waiting
   * requests.
   */
  readonly isOpen: (scope: Scope) => boolean;
  /** Waits until the request may be sent. An interruption ends the wait at once. */
  readonly admit: (admission: Admission) => Effect.Effect<Admitted>;
  /**
   * Reports a response head, of any status. For a refusal, also call `recordRefusal`, and call both before the `leave` of the admission.
   * Otherwise other requests could be sent although the refusal is already known.
   */
  readonly recordResponse: (scope: Scope) => void;
  /** Reports a response head with which the provider refuses requests for now. */
  readonly recordRefusal: (scope: Scope, refusal: Refusal) => void;
  /**
   * Reports that no connection could be made, for a network reason (or, if the path was reached before, because of a certificate that is
   * not the origin's). Completes as soon as it is known whether the path is down.
   */
  readonly recordConnectFailure: (scope: Scope, code: string | undefined) => Effect.Effect<void>;
  /** Reports a connection that broke under a request. Many breaks at once count as an outage until a probe succeeds. */
  readonly recordBreak: (scope: Scope) => void;
  /** Probes a silent path, once for all callers, and returns true if it is lost. A path that cannot be probed is never lost. */
  readonly isLost: (path: string) => Effect.Effect<boolean>;
  /**
   * Reports that this process was suspended. Closes the idle connections of every path. Probes each path at once that has waiting requests
   * or was used in the last hour.
   */
  readonly onWake: () => void;
  /** Probes a path now, and releases its runs if it works again. Returns true if there is such a path. */
  readonly tryNow: (path: string) => Effect.Effect<boolean>;
  readonly list: () => ReadonlyArray<PathStatus>;
}
