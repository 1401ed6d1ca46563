/**
 * A TCP load balancer in front of the gateways. It assigns each connection to the next gateway that accepts it and copies bytes both
 * ways, without reading them.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** A gateway, as the balancer sees it. */
export interface Backend {
  readonly port: number;
  /** Number of times the gateway has started. */
  readonly life: () => number;
}

/** The gateway process that accepted a connection. */
export interface Place {
  readonly node: number;
  readonly life: number;
}

/** A running balancer. */
export interface Balancer {
  readonly port: number;
  /** Returns the gateway that accepted the connection from this local port; undefined if none did. */
  readonly placeOf: (port: number) => Place | undefined;
  readonly close: () => void;
}

/** Starts a balancer on a free port. */
export const start = async (backends: ReadonlyArray<Backend>): Promise<Balancer> => {
  const places = new Map<number, Place>();
  const open = new Set<Socket>();
  let next = 0;
  const join = (client: Socket, tries: number): void => {
    const node = next % backends.length;
    const backend = backends[node];
    next += 1;
    if (backend === undefined || tries === 0) {
      client.destroy();
      return;
    }
    // Read before connecting: if this process dies now, its replacement may have started by the time the connection fails.
    const life = backend.life();
    const server = connect(backend.port, "127.0.0.1");
    const isRefused = () => {
      server.destroy();
      join(client, tries - 1);
    };
    server.once("error", isRefused);
    server.once("connect", () => {
      server.off("error", isRefused);
      server.on("error", () => client.destroy());
      server.on("close", () => client.destroySoon());
      client.on("close", () => server.destroy());
      if (client.destroyed) {
        server.destroy();
        return;
      }
      places.set(client.remotePort ?? 0, { node, life });
      server.setNoDelay(true);
      server.pipe(client, { end: true });
      client.pipe(server, { end: true });
    });
  };
  const server: Server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, (client) => {
    open.add(client);
    places.delete(client.remotePort ?? 0);
    client.on("close", () => open.delete(client));
    client.on("error", () => client.destroy());
    join(client, backends.length);
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  const close = () => {
    for (const socket of open) socket.destroy();
    server.close();
  };
  return { port, placeOf: (from) => places.get(from), close };
};
