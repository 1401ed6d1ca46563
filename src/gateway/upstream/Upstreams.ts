/**
 * Keeps the connections to all upstreams, in one pool for each combination of proxy, certificates and `connect` timeout. Idle connections
 * are kept for a few seconds. Nothing is retried at this level.
 *
 * A new configuration affects new requests only. A pool that no upstream uses any more still serves the requests that started on it,
 * including their retries, and closes its connections as they become idle.
 */
import { Clock, Effect, Redacted, type Scope } from "effect";
import { type ClientConfigError, directProxy, keepAliveMs, proxyChoice } from "../../client/ClientConfig.ts";
import * as Connections from "../../client/connection/Connections.ts";
import * as Connector from "../../client/connection/Connector.ts";
import * as EgressProxy from "../../client/connection/EgressProxy.ts";
import { Origins } from "../../client/connection/Origin.ts";
import { connectMsDefault } from "../../client/ProviderClient.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { Derived } from "../config/Derived.ts";
import type { UpstreamSettings } from "../config/UpstreamSettings.ts";
import { of, type Upstream } from "./Upstream.ts";

/** The settings that require a separate pool. */
export type WaySettings = Pick<UpstreamSettings, "proxy" | "ca" | "clientCert" | "connectMs">;

/** The connection pools of all upstreams. */
export interface Upstreams {
  /** Returns the pool for a server. Servers with equal settings share a pool. */
  readonly reach: (server: WaySettings) => Upstream;
  /** Retires the pools that none of these servers uses. */
  readonly keep: (servers: Iterable<WaySettings>) => void;
  /** Number of open pools, including retired ones with requests in flight. */
  readonly open: () => number;
}

/** Creates the pools. All connections are closed when the scope closes. */
export const make: Effect.Effect<Upstreams, ClientConfigError, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const times = { monotonicMs: () => monotonicMs(clock), nowMs: () => clock.currentTimeMillisUnsafe() };
  const shared = { ...times, keepAliveMs: yield* keepAliveMs(undefined), environment: yield* proxyChoice(undefined) };
  const current = new Map<string, Way>();
  const retired = new Set<Way>();
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all([...current.values(), ...retired].map((way) => way.destroy()))),
  );
  return {
    reach: (server) => {
      const key = keys.of(server);
      const known = current.get(key);
      if (known !== undefined) return known.upstream;
      const way = new Way(server, shared, retired);
      current.set(key, way);
      return way.upstream;
    },
    keep: (servers) => {
      const kept = new Set([...servers].map((server) => keys.of(server)));
      for (const [key, way] of current) {
        if (kept.has(key)) continue;
        current.delete(key);
        way.retire();
      }
    },
    open: () => current.size + retired.size,
  };
});

interface Shared {
  readonly monotonicMs: () => number;
  readonly nowMs: () => number;
  readonly keepAliveMs: number;
  readonly environment: EgressProxy.ProxyChoice;
}

/** The pool of connections that have the same settings, to any server. */
class Way {
  readonly upstream: Upstream;
  readonly destroy: () => Promise<void>;
  readonly #origins = new Origins();
  readonly #retiredWays: Set<Way>;
  #running = 0;
  #retired = false;

  constructor(server: WaySettings, { environment, keepAliveMs, ...times }: Shared, retiredWays: Set<Way>) {
    this.#retiredWays = retiredWays;
    const { clientCert } = server;
    const way = {
      connectMs: server.connectMs ?? connectMsDefault,
      tls: clientCert === undefined ? {} : { cert: clientCert.cert, key: Redacted.value(clientCert.key) },
      proxy: proxyOf(server, environment),
      ...(server.ca === undefined ? {} : { moreCa: server.ca }),
    };
    const connector = Connector.make(way);
    const agent = Connections.open({
      connector,
      keepAliveMs,
      connections: undefined,
      origins: this.#origins,
      now: times.monotonicMs,
      nowMs: times.nowMs,
    });
    const destroy = () => agent.destroy();
    this.destroy = destroy;
    this.upstream = of({ ...times, wire: { agent, connector }, origins: this.#origins, begin: () => this.#begin() });
  }

  /** Closes the idle connections now, and again after each request. */
  retire(): void {
    this.#retired = true;
    this.#settle();
  }

  #begin(): () => void {
    this.#running += 1;
    if (this.#retired) this.#retiredWays.add(this);
    return () => {
      this.#running -= 1;
      // undici makes the connection idle one turn after the request.
      if (this.#retired) setImmediate(() => this.#settle());
    };
  }

  #settle(): void {
    this.#origins.discard();
    if (this.#running > 0) this.#retiredWays.add(this);
    else this.#retiredWays.delete(this);
  }
}

/** Returns the server's own proxy, or else that of the environment. */
const proxyOf = ({ proxy }: WaySettings, environment: EgressProxy.ProxyChoice): EgressProxy.ProxyChoice => {
  if (proxy === undefined) return environment;
  if (proxy === directProxy) return EgressProxy.useOne(undefined);
  const chosen = EgressProxy.read(Redacted.value(proxy));
  // An invalid address is refused when the configuration is read, so this is not expected. If a proxy cannot be parsed, a request must not
  // be sent without the proxy.
  if (chosen === undefined) throw new Error(`An upstream's proxy is not of the form ${EgressProxy.proxyForm}`);
  return EgressProxy.useOne(chosen);
};

/** Computes keys that are equal for equal settings. A key contains the proxy's password, so keys stay in this module. */
const keys = new Derived(({ ca, clientCert, connectMs, proxy }: WaySettings): string =>
  JSON.stringify([
    proxy === undefined || proxy === directProxy ? proxy : [Redacted.value(proxy)],
    ca,
    clientCert === undefined ? undefined : [clientCert.cert, Redacted.value(clientCert.key)],
    connectMs,
  ]),
);
