/**
 * Serves a test's own handler on this machine, for header values and bodies that a fault server does not record.
 */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { Effect, type Scope } from "effect";

/** Starts a server that stops with its scope, and returns its address. */
export const serve = (handler: RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly stop: Effect.Effect<void> }>((resume) => {
      const server = createServer(handler);
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        const port = typeof address === "object" && address !== null ? address.port : 0;
        const stop = Effect.callback<void>((stopped) => {
          server.close(() => stopped(Effect.void));
          server.closeAllConnections();
        });
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, stop }));
      });
    }),
    ({ stop }) => stop,
  ).pipe(Effect.map(({ url }) => url));

/** Reads a request's body as JSON and passes it on. */
export const withBody = (request: IncomingMessage, then: (json: unknown) => void): void => {
  const chunks: Array<Buffer> = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString();
    then(text === "" ? undefined : JSON.parse(text));
  });
};

/** A whole answer of OpenAI's chat protocol. */
export const answer =
  'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n' +
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
