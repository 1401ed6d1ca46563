/**
 * Serves one behaviour on a loopback port for the duration of one provocation.
 */
import * as net from "node:net";
import * as tls from "node:tls";
import * as Certificates from "./Certificates.ts";

/** Behaviour of a server on a connection, once the first bytes of a request have come. */
export type Behaviour = (socket: net.Socket) => void;

/** The listener of a server: in plain text, or with one of the test certificates. */
export interface Listening {
  readonly certificate?: string;
  /** True if the server acts as soon as the connection is open, before any byte of the client. */
  readonly atOnce?: boolean;
}

export const listen = (server: net.Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (typeof address === "object" && address !== null) resolve(address.port);
    });
  });

/**
 * Runs `use` against a server on its own port, and destroys every connection afterwards.
 *
 * @param behaviour behaviour after the first bytes
 * @param listening plain text unless a certificate is given
 * @param use called with the port
 */
export const withServer = async <A>(
  behaviour: Behaviour,
  listening: Listening,
  use: (port: number) => Promise<A>,
): Promise<A> => {
  const sockets = new Set<net.Socket>();
  const serve = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined); // the client may leave first
    if (listening.atOnce === true) behaviour(socket);
    else socket.once("data", () => behaviour(socket));
  };
  const server =
    listening.certificate === undefined
      ? net.createServer({ noDelay: true }, serve)
      : tls.createServer({ key: Certificates.key, cert: listening.certificate, noDelay: true }, serve);
  server.on("tlsClientError", () => undefined); // the test provokes a refused certificate
  try {
    return await use(await listen(server));
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
};

/** A port without a listener, which was free a moment ago. */
export const closedPort = async (): Promise<number> => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
};
