/**
 * Serves two megabytes and ends them in each way in which a broken response may end: the real gateway, and a stand-in for the others.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Context, Effect, Layer, References, type Scope } from "effect";
import { Gateway } from "../../src/gateway/Gateway.ts";
import { layer } from "../../src/gateway/GatewayLayers.ts";

/** The ways to end; `gateway` is what the real one does for an unknown client. */
export const endings = ["clean", "stop", "reset", "open", "gateway"] as const;
/** A way to end. */
export type Ending = (typeof endings)[number];

/** The path of a model request; the stand-in takes the ending in front of it. */
export const path = "/v1/chat/completions";

/** The pause between the error event and the end, in milliseconds: as the gateway's. */
const pauseMs = 200;

/** The old ending waited so long for what it had written, in milliseconds. */
const flushMs = 2_000;

const event = (content: string): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;

/** The body: some 2 MB of text that never finishes. */
const text = Array.from({ length: 2048 }, (_, index) => event(`${index} ${"x".repeat(900)}`)).join("");

const errorEvent = `data: ${JSON.stringify({ error: { message: "broken", type: "invalid_request_error", param: null, code: "broken" } })}\n\n`;

/** A request that no other one repeats: the gateway answers repeats from memory. */
export const bodyOf = (play: number | string): string =>
  JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: `play ${play}` }] });

/** Where the two listen. */
export interface Served {
  readonly standIn: number;
  readonly gateway: number;
  /** Bytes of the body that each ending sends before its end. */
  readonly bytes: Readonly<Record<Ending, number>>;
}

const ends: Readonly<Record<Exclude<Ending, "gateway">, (response: ServerResponse) => Promise<unknown>>> = {
  clean: async (response) => response.end(),
  stop: async (response) => response.socket?.end(),
  // Without chunks there is none to leave open.
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

/** The gateway's provider: it breaks in its text. */
const provider = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => response.destroy());
  });
});

const listening = (server: Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      // A server that listens on a port has an address of this kind.
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)));
    }),
    () =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  );

/** Starts both. */
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

/** The bytes of the gateway's response to a client that reads at once: its error event has a message of its own. */
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
  throw new Error("the gateway's broken response ended as a whole one");
};
