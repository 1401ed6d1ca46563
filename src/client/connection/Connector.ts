/** Opens sockets for the client, with an exact connect timeout, and gives access to the socket for which a request waits. */

import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";
import * as Tls from "node:tls";
import type * as Undici from "@effect/platform-node/Undici";
import type { EgressProxy, ProxyChoice, ProxyTarget } from "./EgressProxy.ts";
import { type Opening, Tunnel } from "./Tunnel.ts";
import { buildConnector } from "./Undici.ts";

/** Raised by the `connect` clock: no connection was usable in time, so no byte of a request was written. */
export class ConnectStalled extends Error {
  override readonly name = "ConnectStalled";
  /** `PROXY_STALLED` if the egress proxy had not opened the tunnel. */
  readonly code: "CONNECT_STALLED" | "PROXY_STALLED";

  constructor(code: "CONNECT_STALLED" | "PROXY_STALLED" = "CONNECT_STALLED") {
    super("No connection could be opened within the connect timeout");
    this.code = code;
  }
}

/** A private certificate authority and a client certificate, in PEM format. */
export interface TlsOptions {
  /** Replaces the authorities that Node trusts. */
  readonly ca?: string | Array<string>;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** A request that waits for a connection. */
export interface Waiting {
  /** The connection that is being opened for this request; undefined after it has opened or failed. */
  connecting: Opening | undefined;
}

/** Opens sockets for undici within the `connect` clock, and gives an exchange access to the socket that is being opened for it. */
export interface Connector {
  /** For undici's `connect` option. */
  readonly connect: Undici.buildConnector.connector;
  /** Opens a connection that belongs to no request, within the `connect` clock, or within `limitMs` if that is shorter. */
  readonly open: (
    options: Undici.buildConnector.Options,
    callback: Undici.buildConnector.Callback,
    limitMs?: number,
  ) => Opening | undefined;
  /** Returns the egress proxy of an origin. The origin is written as in `URL.origin`. */
  readonly proxyOf: (origin: string) => EgressProxy | undefined;
  /** Returns the request that is being dispatched. */
  readonly findWaiting: () => Waiting | undefined;
  /**
   * Runs a dispatch, and assigns the socket that undici opens within it to the waiting request. If the request first waits for a free
   * connection and undici opens a socket only later, that socket is not assigned to any request.
   */
  readonly withWaiting: <A>(waiting: Waiting, dispatch: () => A) => A;
}

/** Timeouts, certificates and proxies with which a connection is opened. */
export interface ConnectorOptions {
  /** Time limit for name lookup, TCP, CONNECT and TLS together, in milliseconds. */
  readonly connectMs: number;
  /** Private certificate authority and client certificate for the origin. */
  readonly tls: TlsOptions;
  /** Certificate authorities that are trusted in addition to those that Node trusts, in PEM format. */
  readonly moreCa?: string | undefined;
  readonly proxy: ProxyChoice;
}

/** Returns the destination of a connection to an origin, in the form that undici uses, with an IPv6 address without brackets. */
export const targetOf = (origin: string): Undici.buildConnector.Options => {
  const { hostname, host, port, protocol } = new URL(origin);
  return { hostname: hostname.replace(/^\[|\]$/g, ""), host, port, protocol };
};

const withPort = ({ hostname, port, protocol }: Undici.buildConnector.Options): ProxyTarget => ({
  protocol,
  hostname,
  port: Number(port) || (protocol === "https:" ? 443 : 80),
});

/** The request for which a connection is being opened. */
const current = new AsyncLocalStorage<Waiting>();

/** Creates a connector. It reads no certificate and opens no socket before the first connection. */
export const make = ({ connectMs, moreCa, proxy, tls }: ConnectorOptions): Connector => {
  // The connectors are created for the first connection, so that an unreadable certificate counts as a failure to connect. All connections
  // share one context, because reading about a hundred and fifty certificates takes milliseconds.
  const toOrigin = memoize(() => originConnector({ moreCa, tls }));
  const toProxy = memoize(() => proxyConnector(moreCa ?? tls.ca));
  const open = (options: Undici.buildConnector.Options, settle: Undici.buildConnector.Callback): unknown => {
    const chosen = proxy(withPort(options));
    if (chosen === undefined) return toOrigin()(options, settle);
    return new Tunnel(chosen, options, { toProxy: toProxy(), toOrigin: toOrigin() }, settle);
  };
  const openWithTimeout = (
    options: Undici.buildConnector.Options,
    callback: Undici.buildConnector.Callback,
    limitMs: number = connectMs,
  ): Opening | undefined => {
    const settle: Undici.buildConnector.Callback = (...result) => {
      clearTimeout(timer);
      callback(...result);
    };
    // The connector returns its socket, although its type does not say so. It runs outside the dispatch's context, because the socket keeps
    // its context for its whole life. That context would hold the request that opened the socket, with its body.
    const opened: unknown = current.exit(() => open(options, settle));
    const opening = opened instanceof Socket || opened instanceof Tunnel ? opened : undefined;
    const timer = setTimeout(
      () => {
        const atProxy = opening instanceof Tunnel && !opening.open;
        opening?.destroy(new ConnectStalled(atProxy ? "PROXY_STALLED" : "CONNECT_STALLED"));
      },
      Math.min(connectMs, limitMs),
    );
    return opening;
  };
  return {
    connect: (options, callback) => {
      const waiting = current.getStore();
      const opening = openWithTimeout(options, (...result) => {
        if (waiting !== undefined) waiting.connecting = undefined;
        callback(...result);
      });
      if (waiting !== undefined) waiting.connecting = opening;
    },
    open: openWithTimeout,
    proxyOf: (origin) => proxy(withPort(targetOf(origin))),
    findWaiting: () => current.getStore(),
    withWaiting: (waiting, dispatch) => current.run(waiting, dispatch),
  };
};

/**
 * Idle time after which TCP probes a silent socket, in milliseconds. libuv then probes once per second, ten times, so an idle socket whose
 * peer is gone breaks after 14 s. TCP does not probe while sent bytes are unacknowledged.
 */
export const keepAliveProbeMs = 4_000;

/** Disables undici's own keep-alive, because Node applies a delay only once and ignores a second call with the same value. */
const ownKeepAlive = { keepAlive: false } as const;

/** Enables TCP keep-alive after the socket is connected. If it were enabled earlier, libuv would forget the delay and use a minute. */
const withKeepAlive =
  (connect: Undici.buildConnector.connector): Undici.buildConnector.connector =>
  (options, callback) =>
    connect(options, (...result) => {
      result[1]?.setKeepAlive(true, keepAliveProbeMs);
      callback(...result);
    });

const originConnector = ({ moreCa, tls }: Pick<ConnectorOptions, "moreCa" | "tls">) => {
  const { cert, key, servername } = tls;
  const shown = { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  const context =
    moreCa === undefined ? undefined : Tls.createSecureContext({ ...shown, ca: withNodeCertificates(moreCa) });
  const connect = buildConnector({
    ...(context === undefined ? tls : { secureContext: context }),
    ...(servername === undefined ? {} : { servername }),
    allowH2: false,
    // undici's own connect timer is disabled, because it counts in steps of half a second or more.
    timeout: 0,
    ...ownKeepAlive,
  });
  return withKeepAlive(connect);
};

/** Creates the connector to a proxy. The proxy sees neither the client certificate for the origin nor the origin's server name. */
const proxyConnector = (ca: TlsOptions["ca"]) =>
  withKeepAlive(
    buildConnector({
      ...(ca === undefined ? {} : { secureContext: Tls.createSecureContext({ ca: withNodeCertificates(ca) }) }),
      allowH2: false,
      timeout: 0,
      ...ownKeepAlive,
    }),
  );

const memoize = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/** Adds certificates to those that Node already trusts, including `NODE_EXTRA_CA_CERTS`. */
const withNodeCertificates = (ca: string | Array<string>): Array<string> => [...trustedCertificates(), ...[ca].flat()];

/** Returns the certificates that the runtime trusts. Bun and older versions of Node provide only their built-in list. */
const trustedCertificates = (): ReadonlyArray<string> => {
  const { getCACertificates }: Partial<typeof Tls> = Tls;
  return getCACertificates?.("default") ?? Tls.rootCertificates;
};
