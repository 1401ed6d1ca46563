/**
 * Stands before the gateways as a balancer of TCP does: it hands each connection to the next gateway that takes it, copies bytes,
 * and knows nothing of what they say.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** A gateway as the balancer knows it. */
export interface Backend {
  readonly port: number;
  /** Which life of it: it counts its starts. */
  readonly life: () => number;
}

/** Where a connection went. */
export interface Place {
  readonly node: number;
  readonly life: number;
}

/** The balancer. */
export interface Balancer {
  readonly port: number;
  /** Where the connection from a port of this machine went; undefined where no gateway has taken it. */
  readonly placeOf: (port: number) => Place | undefined;
  readonly close: () => void;
}

/** Starts it. */
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
    // The life that takes the connection: one that dies now is told of after the next one has begun.
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
