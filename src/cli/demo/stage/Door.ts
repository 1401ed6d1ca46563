/**
 * A local proxy that can be shut and reopened at the same address, to simulate an outage of the network or the listener.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { Effect, type Scope } from "effect";

/** A TCP proxy in front of a local server. While it is shut, connections to it are refused. */
export class Door {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  /** Creates an open proxy that closes with the scope. */
  static readonly make = (target: number): Effect.Effect<Door, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.tap(
        Effect.sync(() => new Door(target)),
        (door) => door.open,
      ),
      (door) => door.shut,
    );

  constructor(target: number) {
    this.#target = target;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  readonly open: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const server = createServer((socket) => this.#forward(socket));
    this.#server = server;
    server.listen(this.#port, "127.0.0.1", () => {
      const address = server.address();
      if (typeof address === "object" && address !== null) this.#port = address.port;
      resume(Effect.void);
    });
  });

  /** Closes every connection and refuses new ones. */
  readonly shut: Effect.Effect<void> = Effect.callback<void>((resume) => {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
    if (this.#server === undefined) return resume(Effect.void);
    this.#server.close(() => resume(Effect.void));
    this.#server = undefined;
  });

  #forward(socket: Socket): void {
    const other = connect(this.#target, "127.0.0.1");
    for (const [one, behind] of [
      [socket, other],
      [other, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => behind.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        behind.destroy();
      });
      one.pipe(behind);
    }
  }
}
