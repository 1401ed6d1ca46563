/**
 * Says what a request asks of its path, what it is told, and how a path stands.
 */
import type * as Effect from "effect/Effect";
import type { PathWay } from "./Path.ts";

/** Whose requests share a cooldown: a path, a credential (by digest, "" for all) and a model. */
export interface Scope {
  readonly path: string;
  readonly credential: string;
  readonly model: string | undefined;
}

/** How things stand for a request of a scope. */
export interface Standing {
  /** `down` also while the path is returning: a request waits for its turn. */
  readonly path: "up" | "down";
  /** The path is back. It counts as down while those that wait for it are let go in waves. */
  readonly returning?: boolean;
  /** What is left of an announced wait, in milliseconds; what another run has heard counts for `maxRetryAfterMs` at most. */
  readonly cooldownMs: number;
}

/** What a waiting run is told. Times are wall clock, milliseconds since the epoch. */
export interface Wait {
  readonly for: "path" | "cooldown";
  readonly since: number;
  readonly until?: number;
}

/** A provider's refusal that announces a wait. */
export interface Refusal {
  readonly kind: "rate_limited" | "overloaded";
  readonly waitMs: number;
  /** The wait is about this request alone, and holds no other. */
  readonly onlyThis: boolean;
}

/** A request that asks to go. */
export interface Admission {
  readonly scope: Scope;
  /** Longest announced wait that this run keeps, in milliseconds. */
  readonly maxRetryAfterMs: number;
  /** Longest that the request waits, in milliseconds; infinite for ever. */
  readonly withinMs: number;
  /** Called in the step in which a wait begins, or becomes another one. Must not throw. */
  readonly told: (wait: Wait) => void;
  /**
   * Given the way to say that the request is over or has a response, in the very step that lets it go: until then it counts among
   * the requests that are let go together. To call it twice does nothing.
   */
  readonly hold: (leave: () => void) => void;
}

/** What became of it, and how long it has waited in milliseconds. */
export type Admitted =
  | { readonly _tag: "admitted"; readonly waitedMs: number }
  /** The time to wait was over (`waitMs` is 0), or would be before the announced wait is, of which `waitMs` are left. */
  | { readonly _tag: "too_long"; readonly for: "path" | "cooldown"; readonly waitedMs: number; readonly waitMs: number }
  /** As many requests wait as may. */
  | { readonly _tag: "full"; readonly waitedMs: number };

/** How a path stands, for a person. Times are wall clock, milliseconds since the epoch. */
export interface PathStatus {
  readonly path: string;
  /** `returning`: it is back, and waiting runs are let go in waves. */
  readonly state: "up" | "down" | "returning";
  readonly since: number;
  /** Whether it was ever reached. */
  readonly reached: boolean;
  /** Probes since it went down. */
  readonly probes: number;
  readonly nextProbeAt?: number;
  /** The code of the last failed probe or connect. */
  readonly code?: string;
  /** Runs that wait for it, for its cooldowns too. */
  readonly waiting: number;
  readonly cooldowns: ReadonlyArray<{
    readonly model?: string;
    /** The first eight characters of the credential's digest. */
    readonly credential?: string;
    readonly kind: "rate_limited" | "overloaded";
    readonly until: number;
  }>;
}

/** What there is to ask and to tell of the paths of a process. */
export interface PathsService {
  /** From now on a path can be asked this way. */
  readonly attach: (path: string, way: PathWay) => void;
  /** A path was reached before this process began: its record says so. */
  readonly wasReached: (path: string) => void;
  readonly hasReached: (path: string) => boolean;
  readonly standing: (scope: Scope, maxRetryAfterMs: number) => Standing;
  /** Whether a request may go at once, without being counted: the path is up, nothing cools, nobody waits. */
  readonly isOpen: (scope: Scope) => boolean;
  /** Waits until the request may go. An interruption ends the wait at once. */
  readonly admit: (admission: Admission) => Effect.Effect<Admitted>;
  /**
   * A response head has come, of any status. A run says so, and says `refused` where the head refuses, before it calls the `leave` that
   * its admission gave it: else others go into a refusal that was heard.
   */
  readonly answered: (scope: Scope) => void;
  /** The head said that the provider takes no more for now. */
  readonly refused: (scope: Scope, refusal: Refusal) => void;
  /**
   * No connection could be made, for a network reason (or, where the path was reached before, a certificate that is not the
   * origin's). Done as soon as it is known whether the path is down.
   */
  readonly unconnected: (scope: Scope, code: string | undefined) => Effect.Effect<void>;
  /** A connection broke under a request. Many at once are an outage until a probe says otherwise. */
  readonly broke: (scope: Scope) => void;
  /** Asks a path that is silent, once for all that ask: whether it is lost. Nothing is lost where nobody can probe. */
  readonly isLost: (path: string) => Effect.Effect<boolean>;
  /** This process has not run for a while: every path with runs on it is asked at once, idle connections go. */
  readonly woke: () => void;
  /** Asks a path now, and lets its runs go where it is back. Returns whether there is such a path. */
  readonly tryNow: (path: string) => Effect.Effect<boolean>;
  readonly list: () => ReadonlyArray<PathStatus>;
}
