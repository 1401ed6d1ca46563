/**
 * A client program that wants one stream. It parses the response as its SDK would, and retries a broken one with the SDK's retry
 * headers.
 */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Balancer, Place } from "./Balancer.ts";
import type { Drawn } from "./Drawn.ts";
import { Reading } from "./Reading.ts";
import { bodyOf, wires } from "./Wires.ts";

/** One request of a client and its outcome. Times are in milliseconds. */
export interface Tried {
  readonly from: number;
  readonly to: number;
  /** The gateway that accepted the connection; undefined if none did. */
  readonly place: Place | undefined;
  readonly run: string | undefined;
  readonly status: number | undefined;
  readonly text: string;
  readonly calls: ReadonlyArray<string>;
  /**
   * `whole`: the protocol's end arrived. `broken`: the connection broke, or the status was one that SDKs retry. `told`: an error
   * message told the client not to retry.
   */
  readonly outcome: "whole" | "broken" | "told";
  /** The error message, or how the response broke. */
  readonly said: string;
}

/** A stream and every request that its client made for it. */
export interface Wanted {
  readonly drawn: Drawn;
  readonly tries: ReadonlyArray<Tried>;
  /** True if the client is done, with or without the stream. */
  readonly isOver: boolean;
}

/** Maximum requests for one stream, including the first. */
const triesMax = 12;

/** First and maximum delay before a retry, in milliseconds. They grow like the SDKs' delays, but are shorter. */
const againMs = 250;
const againMaxMs = 2_000;

/** Timeout for the next byte, in milliseconds. */
const silenceMs = 60_000;

/** True if SDKs retry this status when no header says otherwise. */
const isPassing = (status: number): boolean => [408, 409, 429].includes(status) || status >= 500;

const headersOf = (drawn: Drawn, nth: number): Record<string, string> => {
  const { headers } = wires[drawn.protocol];
  const isStainless = "x-stainless-lang" in headers;
  return {
    ...headers,
    "content-type": "application/json",
    ...(isStainless ? { "x-stainless-retry-count": String(nth) } : {}),
  };
};

/** The request path. Streams of kind `held` select the mode `on_complete` in it. */
const pathOf = (drawn: Drawn): string =>
  drawn.kind === "held" ? `/on_complete${wires[drawn.protocol].path}` : wires[drawn.protocol].path;

const isTold = (response: IncomingMessage, reading: Reading): boolean => {
  const should = response.headers["x-should-retry"];
  const status = response.statusCode ?? 0;
  if (reading.error !== undefined && status === 200) return true;
  if (status === 200) return false;
  return should === "false" || (should !== "true" && !isPassing(status));
};

/** Sends one request and reads its response to the end. */
const sendOnce = (balancer: Balancer, drawn: Drawn, nth: number): Promise<Tried> =>
  new Promise((resolve) => {
    const from = Date.now();
    const reading = new Reading(drawn.protocol);
    let response: IncomingMessage | undefined;
    let port = 0;
    let refusal = "";
    const over = (outcome: Tried["outcome"], said: string): void => {
      asked.destroy();
      resolve({
        from,
        to: Date.now(),
        place: balancer.placeOf(port),
        run: response?.headers["x-recovery-run"]?.toString(),
        status: response?.statusCode,
        text: reading.text,
        calls: reading.calls,
        outcome,
        said,
      });
    };
    const settle = (how: string): void => {
      const words = refusal.slice(0, 300);
      if (response !== undefined && isTold(response, reading)) over("told", reading.error ?? words);
      else over(reading.isWhole && response?.statusCode === 200 ? "whole" : "broken", words === "" ? how : words);
    };
    const asked: ClientRequest = request(
      { port: balancer.port, path: pathOf(drawn), method: "POST", agent: false, headers: headersOf(drawn, nth) },
      (got) => {
        response = got;
        got.on("data", (bytes: Buffer) => {
          if (got.statusCode === 200) reading.push(bytes);
          else refusal += String(bytes);
        });
        got.once("end", () => settle("ended"));
        got.on("error", (error) => settle(error.message));
        got.once("close", () => settle("closed"));
      },
    );
    asked.once("socket", (socket) => {
      socket.setNoDelay(true);
      socket.once("connect", () => {
        port = socket.localPort ?? 0;
      });
    });
    asked.setTimeout(silenceMs, () => over("broken", `no byte for ${silenceMs} ms`));
    asked.on("error", (error) => settle(error.message));
    asked.end(bodyOf(drawn));
  });

/** Requests the stream until it is whole, an error says not to retry, or `triesMax` is reached. */
export const requestUntilWhole = async (
  balancer: Balancer,
  drawn: Drawn,
  note: (wanted: Wanted) => void,
): Promise<void> => {
  const tries: Array<Tried> = [];
  note({ drawn, tries, isOver: false });
  for (let nth = 0; nth < triesMax; nth += 1) {
    const tried = await sendOnce(balancer, drawn, nth);
    tries.push(tried);
    if (tried.outcome !== "broken") break;
    await new Promise((resolve) => setTimeout(resolve, Math.min(againMaxMs, againMs * 2 ** nth)));
  }
  note({ drawn, tries, isOver: true });
};
