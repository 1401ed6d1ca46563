/**
 * Serves the page on a separate socket, like the gateway: on loopback, on any free port, without a token's prefix.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Context, Effect, Layer, type Scope } from "effect";
import { layer } from "../../../src/gateway/page/RecoveryPage.ts";
import { Page } from "../../../src/gateway/proxy/PageHandler.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";

export interface PageServer {
  /** `http://127.0.0.1:PORT/t/TOKEN/`, with a token. */
  readonly url: string;
  readonly handle: (path: string, init?: RequestInit) => Effect.Effect<Response | undefined>;
  /** Counts the open feeds. */
  readonly feeds: () => number;
  /** The runs that the most recent feed was asked to poll. */
  readonly asked: () => ReadonlyArray<string>;
  /** Sets the treatment of further requests for the feed: served, never answered, or refused. */
  readonly setFeed: (how: "serve" | "silent" | "refuse") => void;
  /** Breaks every connection. */
  readonly cut: () => void;
}

/** The prefix of a token before every path, which the gateway removes. */
const prefix = /^\/t\/[^/]+/;

/** Starts a server that stops with its scope. */
export const pageServer: Effect.Effect<PageServer, never, RunRecorder | Scope.Scope> = Effect.gen(function* () {
  const recorder = yield* RunRecorder;
  const built = yield* Layer.build(Layer.provide(layer, Layer.succeed(RunRecorder, recorder)));
  const page = Context.get(built, Page);
  const context = yield* Effect.context<never>();
  const run = Effect.runPromiseWith(context);
  let open = 0;
  let asked: ReadonlyArray<string> = [];
  let how: Parameters<PageServer["setFeed"]>[0] = "serve";
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
    if (pathname.endsWith("/api/events")) {
      open += 1;
      asked = searchParams.getAll("run");
      response.once("close", () => {
        open -= 1;
      });
      if (how === "refuse") return void response.writeHead(503).end();
      if (how === "silent") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        return void response.write(": nothing follows\n\n");
      }
    }
    const answer = await run(page.handle(await requestOf(request)));
    if (answer === undefined) return void response.writeHead(404).end();
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    const reader = answer.body?.getReader();
    response.once("close", () => void reader?.cancel().catch(() => undefined));
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) response.write(next.value);
    response.end();
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }),
  );
  yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}/t/t0ken/`,
    feeds: () => open,
    asked: () => asked,
    setFeed: (next) => {
      how = next;
    },
    cut: () => server.closeAllConnections(),
    handle: (path, init) => page.handle(new Request(`http://127.0.0.1${path}`, init)),
  };
});

const requestOf = async (request: IncomingMessage): Promise<Request> => {
  const chunks: Array<Buffer> = [];
  for await (const chunk of request) chunks.push(chunk);
  const method = request.method ?? "GET";
  const path = (request.url ?? "/").replace(prefix, "");
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value === "string" ? [[name, value] as [string, string]] : [],
  );
  const body = method === "GET" || method === "HEAD" ? {} : { body: Buffer.concat(chunks) };
  return new Request(`http://127.0.0.1${path}`, { method, headers, ...body });
};

export const put = (runs: ReadonlyArray<Parameters<RunRecorder["Service"]["write"]>[1]>) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    for (const entries of runs) {
      const [first] = entries;
      if (first?._tag === "RunStarted") yield* Effect.orDie(recorder.write(first.run_id, entries));
    }
  });
