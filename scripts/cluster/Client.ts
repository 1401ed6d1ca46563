/**
 * Is a program that wants a stream: it reads it by its SDK's rules, and asks again for one that breaks, with the headers by which
 * an SDK says so.
 */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Balancer, Place } from "./Balancer.ts";
import type { Drawn } from "./Drawn.ts";
import { Reading } from "./Reading.ts";
import { bodyOf, wires } from "./Wires.ts";

/** One request of a client and what came of it. Times are milliseconds. */
export interface Tried {
  readonly from: number;
  readonly to: number;
  /** Which gateway had it; undefined where none took the connection. */
  readonly place: Place | undefined;
  readonly run: string | undefined;
  readonly status: number | undefined;
  readonly text: string;
  readonly calls: ReadonlyArray<string>;
  /**
   * `whole`: its end has come. `broken`: the connection broke, or a status by which SDKs ask again. `told`: it was told, in words, to
   * ask no more.
   */
  readonly outcome: "whole" | "broken" | "told";
  /** What it was told, or how it broke. */
  readonly said: string;
}

/** A stream and all that its client did for it. */
export interface Wanted {
  readonly drawn: Drawn;
  readonly tries: ReadonlyArray<Tried>;
  /** Whether its client is through with it. */
  readonly isOver: boolean;
}

/** How often a program asks for a stream, the first time included. */
const triesMax = 12;

/** Before it asks again, in milliseconds: as the SDKs' waits are, but short. */
const againMs = 250;
const againMaxMs = 2_000;

/** Longest that a client waits for a byte, in milliseconds. */
const silenceMs = 60_000;

/** Statuses by which SDKs ask again, where no header says otherwise. */
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

/** Where it is asked: a stream that may be held says so in its address. */
const pathOf = (drawn: Drawn): string =>
  drawn.kind === "held" ? `/on_complete${wires[drawn.protocol].path}` : wires[drawn.protocol].path;

const isTold = (response: IncomingMessage, reading: Reading): boolean => {
  const should = response.headers["x-should-retry"];
  const status = response.statusCode ?? 0;
  if (reading.error !== undefined && status === 200) return true;
  if (status === 200) return false;
  return should === "false" || (should !== "true" && !isPassing(status));
};

/** Asks once. */
const once = (balancer: Balancer, drawn: Drawn, nth: number): Promise<Tried> =>
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

/** Asks until it has the stream, is told to ask no more, or has asked too often. */
export const want = async (balancer: Balancer, drawn: Drawn, note: (wanted: Wanted) => void): Promise<void> => {
  const tries: Array<Tried> = [];
  note({ drawn, tries, isOver: false });
  for (let nth = 0; nth < triesMax; nth += 1) {
    const tried = await once(balancer, drawn, nth);
    tries.push(tried);
    if (tried.outcome !== "broken") break;
    await new Promise((resolve) => setTimeout(resolve, Math.min(againMaxMs, againMs * 2 ** nth)));
  }
  note({ drawn, tries, isOver: true });
};
