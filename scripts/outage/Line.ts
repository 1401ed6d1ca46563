/**
 * Simulates the network path to one provider: connects that succeed or fail, pooled idle connections, and connections that carry a
 * response.
 */
import { Effect } from "effect";
import type { Failure } from "../../src/domain/Failure.ts";
import type { PathWay, Probed } from "../../src/paths/Path.ts";
import type { VirtualTime } from "./VirtualTime.ts";
import type { Outage, OutageKind } from "./Weather.ts";

/** Duration of a successful connect, in milliseconds. */
export const connectMs = 40;
/** Timeouts of a client's connect and of a probe, in milliseconds. */
export const connectMaxMs = 30_000;
const probeMaxMs = 5_000;
/** Maximum idle time of a pooled connection, in milliseconds. */
export const idleMaxMs = 10_000;
/** Times of the SYN retransmissions into a black hole, as on Linux, in milliseconds from the start of the connect. */
const synMs = [1_000, 3_000, 7_000, 15_000] as const;

/** One connection. A `dead` one carries nothing more, but neither side has noticed. */
export interface Connection {
  state: "open" | "closed" | "dead";
  /** Called when the connection is reset. */
  onReset: (() => void) | undefined;
  idleSince: number;
}

/** The result of a connect. */
export type Connected =
  | { readonly _tag: "connected"; readonly connection: Connection }
  | { readonly _tag: "failed"; readonly failure: Failure };

const refusedBy: Record<Exclude<OutageKind, "black_hole" | "blip">, readonly [ms: number, code: string]> = {
  refused: [1, "ECONNREFUSED"],
  unresolved: [5, "ENOTFOUND"],
  captive: [30, "DEPTH_ZERO_SELF_SIGNED_CERT"],
};

const connectFailure = (code: string): Failure => ({
  kind: "transport",
  operation: "connect",
  code,
  ...(code === "DEPTH_ZERO_SELF_SIGNED_CERT" ? { retryable: false } : {}),
});

/** The network path to one provider. */
export class Line {
  outage: Outage | undefined;
  readonly #time: VirtualTime;
  readonly #onProbe: () => void;
  readonly #open = new Set<Connection>();
  #idle: Array<Connection> = [];
  /** Deliveries that wait for the end of a black hole. */
  #behindHole: Array<() => void> = [];

  constructor(time: VirtualTime, onProbe: () => void) {
    this.#time = time;
    this.#onProbe = onProbe;
  }

  get inHole(): boolean {
    return this.outage?.kind === "black_hole";
  }

  leave(outage: Outage): void {
    if (outage.kind !== "blip") this.outage = outage;
    if (outage.kind === "unresolved") return;
    if (outage.kind !== "black_hole") this.reset();
    else if (!outage.resumes) this.silence();
  }

  comeBack(): void {
    this.outage = undefined;
    const waiting = this.#behindHole;
    this.#behindHole = [];
    for (const go of waiting) go();
  }

  reset(): void {
    const all = [...this.#open];
    this.#open.clear();
    this.#idle = [];
    for (const connection of all) {
      // A dead connection never receives the reset.
      if (connection.state === "dead") continue;
      connection.state = "closed";
      connection.onReset?.();
    }
  }

  /** Kills every current connection silently: nothing more arrives, and no error is reported. */
  silence(): void {
    for (const connection of this.#open) connection.state = "dead";
  }

  /** Delivers a packet now, after the black hole, or never. */
  carry(connection: Connection, arrives: () => void): void {
    if (connection.state !== "open") return;
    if (this.inHole) this.#behindHole.push(() => this.carry(connection, arrives));
    else arrives();
  }

  /** Takes an idle connection or makes a new one. Returns a function that abandons the connect. */
  connect(done: (it: Connected) => void, limitMs = connectMaxMs): () => void {
    const pooled = this.#fromPool();
    if (pooled === undefined) return this.#dial(limitMs, done);
    done({ _tag: "connected", connection: pooled });
    return () => undefined;
  }

  /** Returns a connection to the pool. */
  free(connection: Connection): void {
    connection.onReset = undefined;
    if (connection.state === "closed") return;
    connection.idleSince = this.#time.now;
    this.#idle.push(connection);
  }

  close(connection: Connection): void {
    connection.onReset = undefined;
    connection.state = "closed";
    this.#open.delete(connection);
  }

  /** The library's means to probe the path. */
  readonly way: PathWay = {
    probe: Effect.callback<Probed>((resume) => {
      this.#onProbe();
      const cancel = this.#dial(probeMaxMs, (it) => {
        if (it._tag === "connected") this.close(it.connection);
        const code = it._tag === "failed" ? it.failure.code : undefined;
        const reason = code === "DEPTH_ZERO_SELF_SIGNED_CERT" ? ("certificate" as const) : ("network" as const);
        const found: Probed = it._tag === "connected" ? { _tag: "works" } : failedBy(reason, code);
        resume(Effect.succeed(found));
      });
      return Effect.sync(cancel);
    }),
    dropIdle: () => {
      for (const connection of this.#idle) this.close(connection);
      this.#idle = [];
    },
  };

  #fromPool(): Connection | undefined {
    for (let it = this.#idle.pop(); it !== undefined; it = this.#idle.pop()) {
      if (it.state !== "closed" && this.#time.now - it.idleSince <= idleMaxMs) return it;
      this.close(it);
    }
    return undefined;
  }

  #dial(limitMs: number, done: (it: Connected) => void): () => void {
    const from = this.#time.now;
    let cancel = (): void => undefined;
    const over = this.#time.after(limitMs, () => {
      cancel();
      done({ _tag: "failed", failure: { kind: "stalled", clock: "connect" } });
    });
    const end = (it: Connected): void => {
      over();
      done(it);
    };
    const arrives = (): void => {
      const { outage } = this;
      if (outage === undefined) {
        cancel = this.#time.after(connectMs, () => (this.outage === undefined ? end(this.#made()) : arrives()));
        return;
      }
      if (outage.kind === "black_hole" || outage.kind === "blip") {
        const passed = this.#time.now - from;
        const next = synMs.find((ms) => ms > passed);
        cancel = next === undefined ? () => undefined : this.#time.at(from + next, arrives);
        return;
      }
      const [ms, code] = refusedBy[outage.kind];
      cancel = this.#time.after(ms, () => end({ _tag: "failed", failure: connectFailure(code) }));
    };
    arrives();
    return () => {
      over();
      cancel();
    };
  }

  #made(): Connected {
    const connection: Connection = { state: "open", onReset: undefined, idleSince: 0 };
    this.#open.add(connection);
    return { _tag: "connected", connection };
  }
}

const failedBy = (reason: "network" | "certificate", code: string | undefined): Probed => ({
  _tag: "failed",
  reason,
  ...(code === undefined ? {} : { code }),
});
