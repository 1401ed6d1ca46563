/**
 * Is a client of gateways: it reads its stream as an SDK does, and asks another gateway for one that breaks, by the name that it has
 * given its request.
 */
import { type Agent, type IncomingMessage, request } from "node:http";
import { Reading } from "../../cluster/Reading.ts";

/** One request of a client, and what came of it. */
export interface Tried {
  readonly node: number;
  readonly status: number | undefined;
  readonly text: string;
  /** Calls that have come whole. */
  readonly calls: number;
  /**
   * `whole`: its end has come. `broken`: the connection broke, or a status by which SDKs ask again. `told`: it was told, in words, to
   * ask no more.
   */
  readonly outcome: "whole" | "broken" | "told";
  readonly said: string;
  /** The gateway gave it the response of an earlier request. */
  readonly isAttached: boolean;
  /** A gateway has taken its connection: what was refused can have reached no provider. */
  readonly isTaken: boolean;
  /** When it began, in milliseconds since the epoch. */
  readonly at: number;
}

/** A client's stream as it is now. */
export interface Wanted {
  readonly name: string;
  readonly body: string;
  readonly tries: Array<Tried>;
  /** What it reads now. */
  reading: Reading;
}

/** The key of all clients: long enough that a response may be sealed with it. */
const key = "sk-0123456789abcdef0123456789abcdef";

/** How a client behaves. Times are milliseconds. */
export interface Manner {
  /** How often it asks for a stream, the first time included. */
  readonly triesMax: number;
  /** Before it asks again for the first time; its later waits are an SDK's. */
  readonly againMs: number;
  /** Longest that it waits for a byte of its first response. */
  readonly silenceMs: number;
  /** Where its first request goes: a connection to one of several processes that share an address. Left out: a new one. */
  readonly agent?: Agent;
}

/** As the SDKs behave, with short waits. */
export const patient: Manner = { triesMax: 8, againMs: 250, silenceMs: 60_000 };

const againMaxMs = 2_000;

/** A stream that nobody has asked for. */
export const wanted = (name: string, body: string): Wanted => ({ name, body, tries: [], reading: new Reading("chat") });

const isTold = ({ headers, statusCode = 0 }: IncomingMessage, reading: Reading): boolean => {
  if (statusCode === 200) return reading.error !== undefined;
  const should = headers["x-should-retry"];
  return should === "false" || (should !== "true" && statusCode < 500 && ![408, 409, 429].includes(statusCode));
};

/** Asks once, as the so-many-th request for this stream. */
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
          // The provider's own word for which script it plays.
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
 * Asks until it has the stream, is told to ask no more, or has asked too often.
 *
 * @param urls of the gateways: the first is asked first, and then the others, where there are any
 */
export const want = async (
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
