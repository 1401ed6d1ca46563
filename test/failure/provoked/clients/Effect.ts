/**
 * Effect's HttpClient over each of its three backends on Node.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient";
import { Effect, Layer, Stream } from "effect";
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http";
import { type Ask, body, type Client } from "./Client.ts";
import { bundledAgent, limits, using } from "./NodeFetch.ts";

const program = (ask: Ask) =>
  Effect.gen(function* () {
    const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient);
    const request = HttpClientRequest.post(ask.url).pipe(HttpClientRequest.bodyText(body, "application/json"));
    const response = yield* client.execute(request);
    ask.onHead?.();
    yield* Stream.runForEach(response.stream, () => Effect.sync(() => ask.onBytes?.()));
  });

const over = <E>(ask: Ask, layer: Layer.Layer<HttpClient.HttpClient, E>): Promise<undefined> =>
  Effect.runPromise(
    program(ask).pipe(
      (run) => (ask.timeoutMs === undefined ? run : Effect.timeout(run, ask.timeoutMs)),
      Effect.provide(layer),
      Effect.as(undefined),
    ),
    ask.signal === undefined ? {} : { signal: ask.signal },
  );

export const effectClients: ReadonlyArray<Client> = [
  {
    name: "Effect HttpClient (fetch)",
    ask: (ask) =>
      using(bundledAgent(ask), (dispatcher) => {
        const init = Layer.succeed(FetchHttpClient.RequestInit, { dispatcher });
        return over(ask, Layer.provideMerge(FetchHttpClient.layer, init));
      }),
  },
  { name: "Effect HttpClient (undici)", ask: (ask) => over(ask, NodeHttpClient.layerUndiciOptions(limits(ask))) },
  {
    name: "Effect HttpClient (node:http)",
    ask: (ask) => over(ask, NodeHttpClient.layerNodeHttpOptions(ask.ca === undefined ? {} : { ca: ask.ca })),
  },
];
