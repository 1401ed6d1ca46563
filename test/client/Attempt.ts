/**
 * Runs requests of the client under test against a fault server, and records the client's reports.
 */
import { createServer, type Socket } from "node:net";
import { Deferred, Effect, type Scope, Stream } from "effect";
import {
  ProviderClient,
  type ProviderClientOptions,
  type ProviderError,
  type ProviderRequest,
} from "../../src/client/index.ts";
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { Part, Protocol } from "../../src/provider/Protocols.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";

export interface Seen {
  readonly parts: ReadonlyArray<Part>;
  readonly error: ProviderError | undefined;
  readonly deliveries: ReadonlyArray<Delivery>;
  readonly bytes: number;
}

export interface Call {
  readonly url: string;
  readonly body?: unknown;
  readonly headers?: ProviderRequest<unknown>["headers"];
  readonly idempotencyKey?: string;
  readonly method?: "POST" | "GET";
}

/** Runs one request to its end and records everything that the client reported. */
export const attempt = (
  client: ProviderClient["Service"],
  protocol: Protocol,
  { url, headers = {}, method = "POST", ...call }: Call,
) =>
  Effect.gen(function* () {
    // undici never keeps the connection of a GET with a body.
    const body = call.body ?? (method === "GET" ? undefined : { stream: true });
    const parts: Array<Part> = [];
    const deliveries: Array<Delivery> = [];
    let bytes = 0;
    const delivery = (now: Delivery) => void deliveries.push(now);
    const count = (n: number) => {
      bytes += n;
    };
    const error = yield* client.stream({ ...call, protocol, url, method, body, headers, delivery, bytes: count }).pipe(
      Stream.runForEach((part) => Effect.sync(() => parts.push(part))),
      Effect.flip,
      Effect.option,
    );
    return { parts, deliveries, bytes, error: error._tag === "Some" ? error.value : undefined } satisfies Seen;
  });

export const setup = (script: FaultScriptInput, options: ProviderClientOptions = {}) =>
  Effect.all({ server: FaultProvider.make({ script }), client: ProviderClient.make(options) });

/** Accepts connections and never writes: TLS to it hangs in the handshake. */
export const silentServer: Effect.Effect<
  {
    readonly port: number;
    readonly accepted: Deferred.Deferred<void>;
    readonly acceptedAgain: Deferred.Deferred<void>;
    readonly closed: Deferred.Deferred<void>;
    readonly closedAgain: Deferred.Deferred<void>;
  },
  never,
  Scope.Scope
> = Effect.gen(function* () {
  const accepted = yield* Deferred.make<void>();
  const acceptedAgain = yield* Deferred.make<void>();
  const closed = yield* Deferred.make<void>();
  const closedAgain = yield* Deferred.make<void>();
  const sockets = new Set<Socket>();
  let seen = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.resume();
    const over = seen === 0 ? closed : closedAgain;
    socket.on("error", () => Deferred.doneUnsafe(over, Effect.void));
    socket.on("close", () => Deferred.doneUnsafe(over, Effect.void));
    Deferred.doneUnsafe(seen === 0 ? accepted : acceptedAgain, Effect.void);
    seen += 1;
  });
  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0));
      });
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void));
        for (const socket of sockets) socket.destroy();
      }),
  );
  return { port, accepted, acceptedAgain, closed, closedAgain };
});

/** Runs everything that is due: one more event loop turn than undici takes to send a request, or to keep a connection. */
export const turns = (count: number): Effect.Effect<void> =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
    { discard: true },
  );
