/**
 * Serves two megabytes and ends them in every way in which a broken response can end, with the real gateway and with a stand-in.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Context, Effect, Layer, References, type Scope } from "effect";
import { Gateway } from "../../src/gateway/Gateway.ts";
import { layer } from "../../src/gateway/GatewayLayers.ts";

/** The endings. `gateway` is the real gateway's for an unknown client. */
export const endings = ["clean", "stop", "reset", "open", "gateway"] as const;
/** One of the endings. */
export type Ending = (typeof endings)[number];

/** The path of a model request. The stand-in expects the ending in front of it. */
export const path = "/v1/chat/completions";

/** Pause between the error event and the end, in milliseconds, as in the gateway. */
const pauseMs = 200;

/** Timeout of the former ending for its buffered bytes, in milliseconds. */
const flushMs = 2_000;

const event = (content: string): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;

/** The body: about 2 MB of text that never finishes. */
const text = Array.from({ length: 2048 }, (_, index) => event(`${index} ${"x".repeat(900)}`)).join("");

const errorEvent = `data: ${JSON.stringify({ error: { message: "broken", type: "invalid_request_error", param: null, code: "broken" } })}\n\n`;

/** A unique request. The gateway would answer a repeated one from memory. */
export const bodyOf = (play: number | string): string =>
  JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: `play ${play}` }] });

/** The ports of the two servers. */
export interface Served {
  readonly standIn: number;
  readonly gateway: number;
  /** Number of bytes of the body that each ending sends before the end. */
  readonly bytes: Readonly<Record<Ending, number>>;
}

const ends: Readonly<Record<Exclude<Ending, "gateway">, (response: ServerResponse) => Promise<unknown>>> = {
  clean: async (response) => response.end(),
  stop: async (response) => response.socket?.end(),
  // A response without chunked encoding has no chunk to leave open.
  open: async (response) => response.socket?.end(response.chunkedEncoding ? "1\r\n" : ""),
  reset: async (response) => {
    const flushed = new Promise<void>((resolve) => response.socket?.write("", () => resolve()));
    await Promise.race([flushed, sleep(flushMs)]);
    response.socket?.resetAndDestroy();
  },
};

const standIn = createServer((request, response) => {
  request.resume().on("end", async () => {
    const [, name = ""] = (request.url ?? "").split("/");
    const end = Object.entries(ends).find(([ending]) => ending === name)?.[1];
    if (end === undefined) return response.writeHead(404).end("nothing");
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    response.write(text);
    response.write(errorEvent);
    await sleep(pauseMs);
    await end(response);
  });
}).on("error", (error) => console.error(error));

/** The gateway's provider, which breaks within its text. */
const provider = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => response.destroy());
  });
});

const listening = (server: Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      // A server that listens on a port has an AddressInfo.
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)));
    }),
    () =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  );

/** Starts both servers. */
export const serve: Effect.Effect<Served, never, Scope.Scope> = Effect.gen(function* () {
  const upstream = `http://127.0.0.1:${yield* listening(provider)}`;
  const services = yield* Layer.build(
    layer({ db: "memory", port: 0, upstreams: { openai: `${upstream}/v1` }, limits: { drainMs: 1 } }).pipe(
      Layer.provide(Layer.succeed(References.MinimumLogLevel, "None")),
    ),
  );
  const { port: gateway } = Context.get(services, Gateway);
  const standInPort = yield* listening(standIn);
  const own = yield* Effect.promise(() => countAll(`http://127.0.0.1:${gateway}${path}`));
  const all = text.length + errorEvent.length;
  return { standIn: standInPort, gateway, bytes: { clean: all, stop: all, reset: all, open: all, gateway: own } };
}).pipe(Effect.orDie);

/** The length of the gateway's response to a client that reads at once. Its error event differs from the stand-in's. */
const countAll = async (url: string): Promise<number> => {
  let bytes = 0;
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: bodyOf("first"),
  });
  try {
    for await (const piece of response.body ?? []) bytes += piece.byteLength;
  } catch {
    return bytes;
  }
  throw new Error("the gateway's broken response ended as if it were whole");
};
