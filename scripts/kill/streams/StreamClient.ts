/**
 * A client of gateways. It reads its stream as an SDK does, and retries a broken one at another gateway with the same idempotency key.
 */
import { type Agent, type IncomingMessage, request } from "node:http";
import { Reading } from "../../cluster/Reading.ts";

/** One request of a client and its outcome. */
export interface Tried {
  readonly node: number;
  readonly status: number | undefined;
  readonly text: string;
  /** Number of calls that arrived complete. */
  readonly calls: number;
  /**
   * `whole`: the protocol's end arrived. `broken`: the connection broke, or the status was one that SDKs retry. `told`: an error
   * message told the client not to retry.
   */
  readonly outcome: "whole" | "broken" | "told";
  readonly said: string;
  /** True if the gateway attached it to the response of an earlier request. */
  readonly isAttached: boolean;
  /** True if a gateway accepted the connection. A refused request cannot have reached the provider. */
  readonly isTaken: boolean;
  /** The start of the request, in milliseconds since the epoch. */
  readonly at: number;
}

/** A client's stream and its current state. */
export interface Wanted {
  readonly name: string;
  readonly body: string;
  readonly tries: Array<Tried>;
  /** The response it is currently reading. */
  reading: Reading;
}

/** The API key of all clients. It is long enough for the gateway to encrypt a stored response with it. */
const key = "sk-0123456789abcdef0123456789abcdef";

/** The retry behaviour of a client. Times are in milliseconds. */
export interface Manner {
  /** Maximum requests for one stream, including the first. */
  readonly triesMax: number;
  /** Delay before the first retry. Later delays are an SDK's. */
  readonly againMs: number;
  /** Timeout for the next byte of its first response. */
  readonly silenceMs: number;
  /** Carries the first request: a connection to one of several processes that share an address. The default is a new connection. */
  readonly agent?: Agent;
}

/** The behaviour of the SDKs, with short delays. */
export const patient: Manner = { triesMax: 8, againMs: 250, silenceMs: 60_000 };

const againMaxMs = 2_000;

/** Creates a stream that has not been requested yet. */
export const makeWanted = (name: string, body: string): Wanted => ({
  name,
  body,
  tries: [],
  reading: new Reading("chat"),
});

const isTold = ({ headers, statusCode = 0 }: IncomingMessage, reading: Reading): boolean => {
  if (statusCode === 200) return reading.error !== undefined;
  const should = headers["x-should-retry"];
  return should === "false" || (should !== "true" && statusCode < 500 && ![408, 409, 429].includes(statusCode));
};

/** Sends one request. The number of earlier tries is its retry count. */
export const ask = (
  one: Wanted,
  node: number,
  url: string,
  { agent, silenceMs = patient.silenceMs }: Partial<Manner> = {},
): Promise<Tried> =>
  new Promise((resolve) => {
    const at = Date.now();
    let isTaken = false;
    const reading = new Reading("chat");
    one.reading = reading;
    const nth = one.tries.length;
    let response: IncomingMessage | undefined;
    let refusal = "";
    const over = (said: string): void => {
      asked.destroy();
      const told = response !== undefined && isTold(response, reading);
      const isWhole = response?.statusCode === 200 && reading.isWhole;
      const tried: Tried = {
        node,
        status: response?.statusCode,
        text: reading.text,
        calls: reading.calls.length,
        outcome: told ? "told" : isWhole ? "whole" : "broken",
        said: told ? (reading.error ?? refusal.slice(0, 300)) : said,
        isAttached: response?.headers["x-recovery-attached"] !== undefined,
        isTaken,
        at,
      };
      resolve(tried);
    };
    const asked = request(
      `${url}/v1/chat/completions`,
      {
        method: "POST",
        agent: agent ?? false,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "user-agent": "OpenAI/JS 7.57.0",
          "x-stainless-lang": "js",
          "x-stainless-retry-count": String(nth),
          "idempotency-key": one.name,
          // Selects the script that the provider plays.
          "x-script": one.name,
        },
      },
      (got) => {
        response = got;
        got.on("data", (bytes: Buffer) => {
          if (got.statusCode === 200) reading.push(bytes);
          else refusal += String(bytes);
        });
        got.once("end", () => over("ended"));
        got.on("error", (error) => over(error.message));
        got.once("close", () => over("closed"));
      },
    );
    asked.once("socket", (socket) => {
      isTaken = !socket.connecting;
      socket.once("connect", () => {
        isTaken = true;
      });
    });
    asked.setTimeout(silenceMs, () => over(`no byte for ${silenceMs} ms`));
    asked.on("error", (error) => over(error.message));
    asked.end(one.body);
  });

/**
 * Requests the stream until it is whole, an error says not to retry, or `triesMax` is reached.
 *
 * @param urls of the gateways: the first gets the first request, the others take the retries in turn
 */
export const requestUntilWhole = async (
  one: Wanted,
  urls: readonly [first: string, ...others: ReadonlyArray<string>],
  manner: Manner = patient,
) => {
  const [first, ...others] = urls;
  for (let nth = 0; nth < manner.triesMax; nth += 1) {
    const node = nth === 0 || others.length === 0 ? 0 : 1 + ((nth - 1) % others.length);
    const tried = await ask(one, node, urls[node] ?? first, nth === 0 ? manner : {});
    one.tries.push(tried);
    if (tried.outcome !== "broken") return;
    const pauseMs = nth === 0 ? manner.againMs : Math.min(againMaxMs, patient.againMs * 2 ** nth);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
};
