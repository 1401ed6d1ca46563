/**
 * Clients that return bytes: node:http, undici 8, and fetch over the undici of this Node and over undici 8.
 */
import * as http from "node:http";
import * as https from "node:https";
import * as Undici from "@effect/platform-node/Undici";
import type { ErrorResponse } from "../../../../src/failure/FailureClassifier.ts";
import { type Ask, body, type Client, drain, headers } from "./Client.ts";
import { bundledAgent, limits, type NodeDispatcher, using } from "./NodeFetch.ts";

const answered = (status: number, heads: ErrorResponse["headers"], read: string): ErrorResponse => ({
  status,
  headers: heads,
  body: read,
});

const nodeHttp: Client = {
  name: "node:http",
  ask: async (ask) => {
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const options = {
        method: "POST",
        headers,
        agent: false as const,
        ...(ask.ca === undefined ? {} : { ca: ask.ca }),
        ...(ask.signal === undefined ? {} : { signal: ask.signal }),
      };
      const request = ask.url.startsWith("https:") ? https.request(ask.url, options) : http.request(ask.url, options);
      request.on("response", resolve);
      request.on("error", reject);
      request.end(body);
    });
    ask.onHead?.();
    const heads = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
    return answered(response.statusCode ?? 0, heads, await drain(response, ask));
  },
};

const undiciRequest: Client = {
  name: "undici",
  ask: (ask) =>
    using(new Undici.Agent(limits(ask)), async (dispatcher) => {
      const signal = ask.signal === undefined ? {} : { signal: ask.signal };
      const response = await Undici.request(ask.url, { method: "POST", headers, body, dispatcher, ...signal });
      ask.onHead?.();
      const heads = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
      return answered(response.statusCode, heads, await drain(response.body, ask));
    }),
};

const readFetched = async (response: Response | Undici.Response, ask: Ask): Promise<ErrorResponse> => {
  ask.onHead?.();
  return answered(response.status, response.headers, response.body === null ? "" : await drain(response.body, ask));
};

const undiciFetch: Client = {
  name: "undici fetch",
  ask: (ask) =>
    using(new Undici.Agent(limits(ask)), async (dispatcher) =>
      readFetched(await Undici.fetch(ask.url, { method: "POST", headers, body, dispatcher, ...ofSignal(ask) }), ask),
    ),
};

const globalFetch: Client = {
  name: "global fetch",
  ask: (ask) => using(bundledAgent(ask), (dispatcher) => fetchOver(dispatcher, ask)),
};

/** Node's fetch over the connections of undici 8, as in a process that imports undici 8 before it fetches. */
const mixedFetch: Client = {
  name: "global fetch over undici 8",
  ask: (ask) =>
    using(new Undici.Dispatcher1Wrapper(new Undici.Agent(limits(ask))), (dispatcher) =>
      // The wrapper poses as an undici 7 dispatcher; its types are those of undici 8.
      fetchOver(dispatcher as unknown as NodeDispatcher, ask),
    ),
};

const fetchOver = async (dispatcher: NodeDispatcher, ask: Ask): Promise<ErrorResponse> =>
  readFetched(await fetch(ask.url, { method: "POST", headers, body, dispatcher, ...ofSignal(ask) }), ask);

const ofSignal = (ask: Ask): { readonly signal?: AbortSignal } =>
  ask.signal === undefined ? {} : { signal: ask.signal };

/** Node's own clients come first, so that its undici is loaded before the other. */
export const rawClients: ReadonlyArray<Client> = [nodeHttp, globalFetch, mixedFetch, undiciRequest, undiciFetch];
