/**
 * Opens sockets for the client: with an exact connect clock, and with access to the socket that a request waits for.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";
import type * as Undici from "@effect/platform-node/Undici";
import { buildConnector } from "./Undici.ts";

/** Raised by the `connect` clock: there was no usable connection within its time, and no byte of a request was written. */
export class ConnectStalled extends Error {
  override readonly name = "ConnectStalled";
  readonly code = "CONNECT_STALLED";
}

/** A private certificate authority and a client certificate, in PEM. */
export interface TlsOptions {
  readonly ca?: string | Array<string>;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** A request that waits for a connection. */
export interface Waiting {
  /** The socket that is being opened for this request, until it is open. */
  connecting: Socket | undefined;
}

/** Opens sockets for undici within the `connect` clock, and lets an exchange reach the socket that is being opened for it. */
export interface Connector {
  /** For undici's `connect` option. */
  readonly connect: Undici.buildConnector.connector;
  /**
   * Runs a dispatch, noting the socket that is opened for it. undici opens one within the dispatch itself or, for a request
   * that waited for a free connection, later in the async context of its dispatch.
   */
  readonly dispatching: <A>(waiting: Waiting, dispatch: () => A) => A;
}

/**
 * Makes a connector.
 *
 * @param connectMs milliseconds for name lookup, TCP and TLS together
 * @param tls private certificate authority and client certificate
 */
export const make = (connectMs: number, tls: TlsOptions): Connector => {
  // undici's own connect timer is off: it counts in steps of half a second and more.
  const open = buildConnector({ ...tls, allowH2: false, timeout: 0 });
  const current = new AsyncLocalStorage<Waiting>();
  return {
    connect: (options, callback) => {
      const waiting = current.getStore();
      const settle: Undici.buildConnector.Callback = (...result) => {
        clearTimeout(timer);
        if (waiting !== undefined) waiting.connecting = undefined;
        callback(...result);
      };
      // The connector gives its socket, which its type does not say.
      const socket: unknown = open(options, settle);
      const timer = setTimeout(() => {
        if (socket instanceof Socket)
          socket.destroy(new ConnectStalled("No connection within the connect clock's time"));
      }, connectMs);
      if (waiting !== undefined && socket instanceof Socket) waiting.connecting = socket;
    },
    dispatching: (waiting, dispatch) => current.run(waiting, dispatch),
  };
};
