/**
 * Helpers of the gateway's tests: a gateway in this process before a server, and a client that sees raw bytes.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Context, Effect, Layer, Random, References, type Scope } from "effect";
import { defaultNames } from "../../src/gateway/config/GatewayOptions.ts";
import type { Upstreams } from "../../src/gateway/config/Options.ts";
import { Gateway } from "../../src/gateway/Gateway.ts";
import { type GatewayProgram, layer, type PageServices } from "../../src/gateway/GatewayLayers.ts";
import type { Page } from "../../src/gateway/proxy/PageHandler.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { FaultProvider, type FaultProviderOptions } from "../../src/testing/index.ts";
import { found } from "../Polling.ts";
import { byProtocol, ids } from "../samples/index.ts";

export const protocols = ids;

export const paths = byProtocol(({ path }) => path);

/** The bodies that a client would send. */
export const bodies = byProtocol(({ bare }) => bare);

/** Several gateways of one test may share a store. */
let numbers = 0;

/** Jitter of almost 0, so that every wait is as short as it can be, and no number twice, so that every run has its id. */
const eager = (): Layer.Layer<never> => {
  const next = () => {
    numbers += 1;
    return numbers;
  };
  const random = { nextIntUnsafe: next, nextDoubleUnsafe: () => next() / 2 ** 32 };
  return Layer.merge(Layer.succeed(Random.Random, random), Layer.succeed(References.MinimumLogLevel, "None"));
};

export interface Fronted {
  readonly url: string;
  readonly gateway: Gateway["Service"];
  readonly services: Context.Context<Gateway | PageServices>;
  /** The runs so far, newest first. */
  readonly runs: Effect.Effect<ReadonlyArray<RunRecord>>;
  /** Waits until the runs are as wanted: the record is read again and again. */
  readonly until: <A>(look: (runs: ReadonlyArray<RunRecord>) => A | undefined) => Effect.Effect<A>;
}

/** The addresses of a server that speaks every protocol. */
export const upstreamsAt = (url: string): Upstreams => ({
  // The names are those of every upstream.
  ...(Object.fromEntries(defaultNames.map((name) => [name, url])) as unknown as Upstreams),
  openai: `${url}/v1`,
});

/** Starts a gateway with a store in memory, in front of an address. */
export const front = (
  upstream: string,
  program: GatewayProgram = {},
  page?: Layer.Layer<Page, never, PageServices>,
): Effect.Effect<Fronted, never, Scope.Scope> =>
  Effect.gen(function* () {
    const upstreams = upstreamsAt(upstream);
    // A test that leaves a stalled stream behind does not wait for it.
    const limits = { drainMs: 50, ...program.limits };
    const services = yield* Layer.build(
      layer({ db: "memory", port: 0, upstreams, ...program, limits }, page).pipe(Layer.provideMerge(eager())),
    );
    const gateway = Context.get(services, Gateway);
    const recorder = Context.get(services, RunRecorder);
    // A test may have more runs than a page has by default.
    const runs = Effect.orDie(recorder.runs({ limit: 10_000 }));
    const until = <A>(look: (runs: ReadonlyArray<RunRecord>) => A | undefined): Effect.Effect<A> =>
      found(Effect.map(runs, look));
    return { url: gateway.url, gateway, services, runs, until };
  }).pipe(Effect.orDie);

/** A fault provider with a gateway in front of it. */
export const fronted = (script: FaultProviderOptions["script"], program: GatewayProgram = {}) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make(script === undefined ? {} : { script });
    return { server, ...(yield* front(server.url, program)) };
  }).pipe(Effect.orDie);

/** A client's response. */
export interface Got {
  readonly status: number;
  readonly statusText: string;
  /** Names and values, flat, as they came. */
  readonly rawHeaders: ReadonlyArray<string>;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly text: string;
  /** The connection broke before the end. */
  readonly broken: boolean;
}

export interface Sending {
  readonly method?: string;
  /** The target as it is written, in place of the address's own path. */
  readonly path?: string;
  readonly headers?: Record<string, string | Array<string>> | ReadonlyArray<string>;
  readonly body?: string | Buffer;
  /** Told of every chunk. */
  readonly onData?: (chunk: Buffer, response: IncomingMessage) => void;
}

/** Sends a request over a new connection and reads the response to its end or break. */
export const send = (url: string, { body, headers, method, onData, path }: Sending = {}): Promise<Got> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      // Node takes a flat list of names and values too, which its type does not say everywhere.
      headers: (headers ?? { "content-type": "application/json" }) as Record<string, string>,
      agent: false,
      ...(path === undefined ? {} : { path }),
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Array<Buffer> = [];
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        onData?.(chunk, response);
      });
      response.on("error", () => undefined);
      response.on("close", () => {
        const all = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          statusText: response.statusMessage ?? "",
          rawHeaders: response.rawHeaders,
          headers: response.headers,
          body: all,
          text: all.toString(),
          broken: !response.complete,
        });
      });
    });
    request.end(body);
  });

/** Posts a protocol's body through a gateway. */
export const post = (url: string, protocol: ProtocolId, sending: Sending = {}): Effect.Effect<Got> =>
  Effect.promise(() => send(`${url}${paths[protocol]}`, { body: JSON.stringify(bodies[protocol]), ...sending }));

/** The value of a header that the gateway adds. */
export const recovery = (got: Got, name: "run" | "attempts" | "rule" | "refused"): string | undefined => {
  const value = got.headers[`x-recovery-${name}`];
  return typeof value === "string" ? value : undefined;
};
