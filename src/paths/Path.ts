/**
 * Describes a path, the way from this process to one origin, and how a transport lets it be asked.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";

/** The path of a request, and whose requests share a cooldown on it. */
export interface Path {
  /** Names the way: scheme, host, port and the proxy in front, as the transport spells them. */
  readonly id: string;
  /** Tells credentials apart, by a digest and never by the credential itself. Left out: one for all. */
  readonly credential?: string;
  /** How the path can be asked, where somebody can. */
  readonly way?: PathWay;
}

/** What a probe has found: a connection could be made, or why not. */
export type Probed =
  | { readonly _tag: "works" }
  | {
      readonly _tag: "failed";
      /** `certificate`: somebody answered who is not the origin (a captive portal). */
      readonly reason: "network" | "certificate";
      readonly code?: string;
    };

/** How a transport lets its path be asked. */
export interface PathWay {
  /**
   * Makes a connection (TCP, a proxy's CONNECT, TLS with its certificate checked) and closes it. It never sends a request, and it
   * ends within its own limit.
   */
  readonly probe: Effect.Effect<Probed>;
  /** Closes the connections that only wait for a request: they may be dead. */
  readonly dropIdle: () => void;
}

/** Tells the attempt that runs which path its request takes, and how that can be asked. A transport calls it before it sends anything. */
export type ReportPath = (path: Path) => void;

/** The listener to which a transport below an attempt reports its path; undefined if no run listens. */
export const AttemptPath = Context.Reference<ReportPath | undefined>("effect-stream-recovery/AttemptPath", {
  defaultValue: () => undefined,
});
