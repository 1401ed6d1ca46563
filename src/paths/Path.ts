/** Describes a path, the way from this process to one origin, and how a transport allows probing it. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";

/** The path of a request, and the credential to which its cooldowns apply. */
export interface Path {
  /** Identifies the path by scheme, host, port and the egress proxy (if any), as the transport spells them. */
  readonly id: string;
  /** Distinguishes credentials by a digest, never by the credential itself. Omitted: one credential for all. */
  readonly credential?: string;
  /** The way in which the path can be probed, if there is one. */
  readonly way?: PathWay;
}

/** Result of a probe: a connection could be made, or the reason why not. */
export type Probed =
  | { readonly _tag: "works" }
  | {
      readonly _tag: "failed";
      /** `certificate`: the host that answered is not the origin (for example a captive portal). */
      readonly reason: "network" | "certificate";
      readonly code?: string;
    };

/** Lets the table of paths probe a path and close its idle connections, through the transport that uses the path. */
export interface PathWay {
  /**
   * Makes a connection (TCP, a proxy's CONNECT, TLS with its certificate checked) and closes it. It never sends a request, and it ends
   * within its own time limit.
   */
  readonly probe: Effect.Effect<Probed>;
  /** Closes idle connections, because they may be dead. */
  readonly dropIdle: () => void;
}

/**
 * Reports the path of a request, and how it can be probed, to the running attempt. A transport calls it before it sends anything.
 */
export type ReportPath = (path: Path) => void;

/** The listener to which a transport below an attempt reports its path; undefined if no run listens. */
export const AttemptPath = Context.Reference<ReportPath | undefined>("effect-stream-recovery/AttemptPath", {
  defaultValue: () => undefined,
});
