/**
 * Opens sockets for the client: with an exact connect clock, and with access to the socket that a request waits for.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";
import * as Tls from "node:tls";
import type * as Undici from "@effect/platform-node/Undici";
import type { EgressProxy, ProxyChoice, ProxyTarget } from "./EgressProxy.ts";
import { type Opening, Tunnel } from "./Tunnel.ts";
import { buildConnector } from "./Undici.ts";

/** Raised by the `connect` clock: there was no usable connection within its time, and no byte of a request was written. */
export class ConnectStalled extends Error {
  override readonly name = "ConnectStalled";
  /** `PROXY_STALLED` while the egress proxy had not answered. */
  readonly code: "CONNECT_STALLED" | "PROXY_STALLED";

  constructor(code: "CONNECT_STALLED" | "PROXY_STALLED" = "CONNECT_STALLED") {
    super("No connection within the connect clock's time");
    this.code = code;
  }
}

/** A private certificate authority and a client certificate, in PEM. */
export interface TlsOptions {
  /** In place of the authorities that Node trusts. */
  readonly ca?: string | Array<string>;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** A request that waits for a connection. */
export interface Waiting {
  /** The connection that is being opened for this request, until it is open. */
  connecting: Opening | undefined;
}

/** Opens sockets for undici within the `connect` clock, and lets an exchange reach the socket that is being opened for it. */
export interface Connector {
  /** For undici's `connect` option. */
  readonly connect: Undici.buildConnector.connector;
  /** Opens one for no request alone, within the `connect` clock or a shorter limit in milliseconds. */
  readonly open: (
    options: Undici.buildConnector.Options,
    callback: Undici.buildConnector.Callback,
    limitMs?: number,
  ) => Opening | undefined;
  /** The egress proxy in front of an origin, as `URL.origin` spells it. */
  readonly proxyOf: (origin: string) => EgressProxy | undefined;
  /** The request that is being dispatched. */
  readonly waiting: () => Waiting | undefined;
  /**
   * Runs a dispatch, noting the socket that is opened for it within the dispatch itself. One that undici opens later, for a request that
   * waited for a free connection, is nobody's here.
   */
  readonly dispatching: <A>(waiting: Waiting, dispatch: () => A) => A;
}

/** How connections are opened. */
export interface ConnectorOptions {
  /** Milliseconds for name lookup, TCP, CONNECT and TLS together. */
  readonly connectMs: number;
  /** Of the origin: private certificate authority and client certificate. */
  readonly tls: TlsOptions;
  /** Authorities beside those that Node trusts, in PEM. */
  readonly moreCa?: string | undefined;
  /** The egress proxy of each target. */
  readonly proxy: ProxyChoice;
}

/** Where a connection to an origin ends, as undici asks for it; an IPv6 address without brackets. */
export const targetOf = (origin: string): Undici.buildConnector.Options => {
  const { hostname, host, port, protocol } = new URL(origin);
  return { hostname: hostname.replace(/^\[|\]$/g, ""), host, port, protocol };
};

const portedOf = ({ hostname, port, protocol }: Undici.buildConnector.Options): ProxyTarget => ({
  protocol,
  hostname,
  port: Number(port) || (protocol === "https:" ? 443 : 80),
});

/** The request that waits for a connection, for as long as that is opened. */
const current = new AsyncLocalStorage<Waiting>();

/** Makes a connector. */
export const make = ({ connectMs, moreCa, proxy, tls }: ConnectorOptions): Connector => {
  // Made when the first connection needs them: a certificate that cannot be read is a failure to connect. One context serves all
  // connections, because reading some hundred and fifty certificates takes milliseconds.
  const toOrigin = once(() => originConnector({ moreCa, tls }));
  const toProxy = once(() => proxyConnector(moreCa ?? tls.ca));
  const open = (options: Undici.buildConnector.Options, settle: Undici.buildConnector.Callback): unknown => {
    const chosen = proxy(portedOf(options));
    if (chosen === undefined) return toOrigin()(options, settle);
    return new Tunnel(chosen, options, { toProxy: toProxy(), toOrigin: toOrigin() }, settle);
  };
  const clocked = (
    options: Undici.buildConnector.Options,
    callback: Undici.buildConnector.Callback,
    limitMs: number = connectMs,
  ): Opening | undefined => {
    const settle: Undici.buildConnector.Callback = (...result) => {
      clearTimeout(timer);
      callback(...result);
    };
    // The connector gives its socket, which its type does not say. Its context is the socket's for as long as it lives: that of a
    // dispatch would keep the request which opened it, and its body.
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
      const opening = clocked(options, (...result) => {
        if (waiting !== undefined) waiting.connecting = undefined;
        callback(...result);
      });
      if (waiting !== undefined) waiting.connecting = opening;
    },
    open: clocked,
    proxyOf: (origin) => proxy(portedOf(targetOf(origin))),
    waiting: () => current.getStore(),
    dispatching: (waiting, dispatch) => current.run(waiting, dispatch),
  };
};

/**
 * A socket on which nothing comes is asked from so many milliseconds on, by TCP itself: libuv then asks once a second, ten times, so that
 * an idle socket whose peer is gone breaks after 14 s. TCP does not ask while bytes of ours are unacknowledged.
 */
export const keepAliveProbeMs = 4_000;

/** undici's own is off: Node sets a delay once, and never again where it is told the same. */
const ownKeepAlive = { keepAlive: false } as const;

/**
 * Turns TCP keep-alive on where the socket is connected. Before that, libuv forgets the delay and takes a minute.
 */
const asked =
  (connect: Undici.buildConnector.connector): Undici.buildConnector.connector =>
  (options, callback) =>
    connect(options, (...result) => {
      result[1]?.setKeepAlive(true, keepAliveProbeMs);
      callback(...result);
    });

const originConnector = ({ moreCa, tls }: Pick<ConnectorOptions, "moreCa" | "tls">) => {
  const { cert, key, servername } = tls;
  const shown = { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  const context = moreCa === undefined ? undefined : Tls.createSecureContext({ ...shown, ca: besideNode(moreCa) });
  const connect = buildConnector({
    ...(context === undefined ? tls : { secureContext: context }),
    ...(servername === undefined ? {} : { servername }),
    allowH2: false,
    // undici's own connect timer is off: it counts in steps of half a second and more.
    timeout: 0,
    ...ownKeepAlive,
  });
  return asked(connect);
};

/** The proxy sees no client certificate of the origin's, and none of its server names. */
const proxyConnector = (ca: TlsOptions["ca"]) =>
  asked(
    buildConnector({
      ...(ca === undefined ? {} : { secureContext: Tls.createSecureContext({ ca: besideNode(ca) }) }),
      allowH2: false,
      timeout: 0,
      ...ownKeepAlive,
    }),
  );

const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/** Certificates beside those that Node trusts already, `NODE_EXTRA_CA_CERTS` among them. */
const besideNode = (ca: string | Array<string>): Array<string> => [...trusted(), ...[ca].flat()];

/** Bun and older Nodes have only the list that they were built with. */
const trusted = (): ReadonlyArray<string> => {
  const { getCACertificates }: Partial<typeof Tls> = Tls;
  return getCACertificates?.("default") ?? Tls.rootCertificates;
};
