/**
 * Helpers of the routes' tests: a gateway before two servers, each of which gives the test's answers and records its requests.
 */
import type { ServerResponse } from "node:http";
import { Effect, Redacted, type Scope } from "effect";
import type { FinishFailure, RouteSettings } from "../../../src/gateway/config/RouteSettings.ts";
import type { UpstreamSettings } from "../../../src/gateway/config/UpstreamSettings.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { serverOf } from "../../Servers.ts";
import { ids, samples } from "../../samples/index.ts";
import { bodies, type Fronted, front, paths, send } from "../GatewayCases.ts";

export const token = "a-token-of-24-characters";
export const operatorsKey = "operator-key-of-the-second";

/** A request to a server. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>;
  readonly body: string;
}

export type Answering = (response: ServerResponse, asked: Asked) => void;

/** Answers with a stream. */
export const streaming =
  (text: string): Answering =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(text);
  };

/** Answers with a status and an error in the words of OpenAI and Anthropic. */
export const failing =
  (status: number, error: object = { type: "error_of_a_test", message: "no" }): Answering =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ type: "error", error }));
  };

/** Answers nothing, and keeps the connection. */
export const silent: Answering = () => undefined;

/** Breaks the connection before any byte. */
export const dying: Answering = (response) => void response.socket?.resetAndDestroy();

/** A server and what it was asked; `answers` may be replaced while it runs. */
export interface Recording {
  readonly url: string;
  readonly asked: Array<Asked>;
  answers: Answering;
}

export const recording = (answers: Answering): Effect.Effect<Recording, never, Scope.Scope> =>
  Effect.gen(function* () {
    const it: { asked: Array<Asked>; answers: Answering } = { asked: [], answers };
    const url = yield* serverOf((request, response) => {
      const chunks: Array<Buffer> = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const asked = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
        it.asked.push(asked);
        it.answers(response, asked);
      });
    });
    return Object.assign(it, { url });
  });

/** The address of a server that is gone. No test listens on this host: a port of the usual one may be another test's by now. */
export const gone: Effect.Effect<string> = Effect.map(Effect.scoped(serverOf(() => undefined)), (url) =>
  url.replace("127.0.0.1", "127.0.0.3"),
);

/** Changes of the usual pair of servers. */
export interface Paired {
  /** Of the route's upstream. */
  readonly second?: Partial<UpstreamSettings>;
  /** The second upstreams have no credential of their own. */
  readonly keyless?: boolean;
  /** Of the first upstreams. */
  readonly first?: Partial<UpstreamSettings>;
  readonly route?: Partial<RouteSettings>;
  readonly movesOn?: ReadonlyArray<FinishFailure>;
  readonly program?: GatewayProgram;
}

/** The vendors' upstreams, and the path after the address of each. */
const firsts = [...new Set(ids.map((id) => samples[id].vendor))].map((name) => ({
  name,
  version: name === "openai" ? "/v1" : "",
}));

/**
 * A gateway whose three upstreams lead to one server and have a further route, `second`, to another one with the operator's credential.
 * Each vendor's own second upstream is called after it (`second`, `second-anthropic`, `second-gemini`).
 */
export const paired = (
  firstUrl: string,
  secondUrl: string,
  { first, keyless = false, movesOn = [], program, route, second }: Paired = {},
): Effect.Effect<Fronted, never, Scope.Scope> => {
  const key = keyless ? {} : { credential: Redacted.make(operatorsKey) };
  const named = firsts.flatMap(
    ({ name, version }): ReadonlyArray<UpstreamSettings> => [
      { name, url: `${firstUrl}${version}`, headers: [], ...first },
      { ...{ name: secondOf(name), url: `${secondUrl}${version}`, headers: [] }, ...key, ...second },
    ],
  );
  const routes = Object.fromEntries(
    firsts.map(({ name }) => [
      name,
      {
        movesOn,
        routes: [
          {
            ...{ id: secondOf(name), upstream: secondOf(name) },
            ...{ set: { headers: [], body: [] }, drop: { headers: [], body: [] }, ...route },
          },
        ],
      },
    ]),
  );
  return front(firstUrl, { named, routes, token, ...program });
};

/** The name of the second upstream of a vendor's. */
export const secondOf = (name: string): string => (name === "openai" ? "second" : `second-${name}`);

/** The first and the second upstream of a protocol's requests. */
export const upstreamsOf = (protocol: ProtocolId): readonly [first: string, second: string] => {
  const name = samples[protocol].vendor;
  return [name, secondOf(name)];
};

/** A body that nothing binds: Responses are kept by default. */
export const freeBody = (protocol: ProtocolId): object =>
  protocol === "openai-responses" ? { ...bodies[protocol], store: false } : bodies[protocol];

/** Asks through the gateway with its token and without a credential. */
export const ask = (
  url: string,
  protocol: ProtocolId,
  {
    body = freeBody(protocol),
    headers = {},
  }: { readonly body?: object | string; readonly headers?: Record<string, string> } = {},
) =>
  Effect.promise(() =>
    send(`${url}${paths[protocol]}`, {
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", "x-recovery-token": token, ...headers },
    }),
  );

/** The route that a response names. */
export const routeIn = (got: { readonly headers: Readonly<Record<string, unknown>> }): unknown =>
  got.headers["x-recovery-route"];
