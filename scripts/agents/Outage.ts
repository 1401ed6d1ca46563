/**
 * A forwarder in front of a provider that can go away: connections break, and its port stops listening.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { Effect, type Scope } from "effect";

/** A path to a provider that can go away. */
export interface Outage {
  /** The provider's URL with another port. */
  readonly url: string;
  /** Makes the provider unreachable for some milliseconds. */
  readonly leave: (ms: number) => Effect.Effect<void>;
}

/** Creates a path to a provider. It closes with the scope. */
export const make = (provider: string): Effect.Effect<Outage, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => Forwarder.listen(Number(new URL(provider).port))),
      (forwarder) => Effect.sync(() => forwarder.close()),
    ),
    (forwarder) => ({
      url: provider.replace(/:\d+$/, `:${forwarder.port}`),
      leave: (ms) => Effect.sync(() => forwarder.leave(ms)),
    }),
  );

class Forwarder {
  port = 0;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #back: NodeJS.Timeout | undefined;

  constructor(target: number) {
    this.#target = target;
  }

  static async listen(target: number): Promise<Forwarder> {
    const forwarder = new Forwarder(target);
    await forwarder.#listen();
    return forwarder;
  }

  leave(ms: number): void {
    this.close();
    this.#back = setTimeout(() => void this.#listen(), ms);
  }

  close(): void {
    clearTimeout(this.#back);
    this.#server?.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #listen(): Promise<void> {
    const server = createServer((near) => {
      const far = connect(this.#target, "127.0.0.1");
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => other.resetAndDestroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    this.#server = server;
    return new Promise((resolve) => {
      server.listen(this.port, "127.0.0.1", () => {
        const address = server.address();
        if (typeof address === "object" && address !== null) this.port = address.port;
        resolve();
      });
    });
  }
}
