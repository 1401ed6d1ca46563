/**
 * Measures the time until a wait that a provider announced to one gateway also holds at another gateway over the same database.
 *
 * The provider refuses the first request of each credential and answers every later one, so the other gateway can learn of the wait only
 * from the store. It is asked repeatedly; the first request that does not reach the provider was held.
 */
import { createServer, type Server as HttpServer, request as httpRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Contender, gateway } from "../gateway/Contenders.ts";
import { wires } from "../gateway/Wires.ts";
import type { Server } from "./Server.ts";

/** The wait that the provider announces, in seconds. It is longer than the whole measurement. */
const announcedSeconds = 50;

/** Maximum time for which the other gateway is asked, in milliseconds. Gateways look for missed notifications every 15 s. */
export const askedMs = 20_000;

/** Makes a run fail at once instead of waiting. */
const flags = ["--budget", "max_retry_after_ms=60000,max_outage_ms=0", "--access-log", "off"] as const;

interface Refusing {
  readonly url: string;
  /** The time at which a credential was refused, by this process's clock; undefined before. */
  readonly refusedAt: (credential: string) => number | undefined;
  /** Number of requests with the credential. */
  readonly asked: (credential: string) => number;
  readonly close: () => void;
}

const refuse = (response: ServerResponse): void => {
  const body = JSON.stringify({ error: { message: "slow down", type: "requests", code: "rate_limit_exceeded" } });
  response.writeHead(429, { "content-type": "application/json", "retry-after": String(announcedSeconds) }).end(body);
};

const answer = (response: ServerResponse): void => {
  const { begin, delta, end } = wires.chat;
  response.writeHead(200, { "content-type": "text/event-stream" }).end(begin + delta("x", 0) + end(1));
};

const refusing = async (): Promise<Refusing> => {
  // Hold one entry for each credential of the measurement.
  const [refused, asked] = [new Map<string, number>(), new Map<string, number>()];
  const server: HttpServer = createServer((request, response) => {
    const credential = request.headers.authorization ?? "";
    asked.set(credential, (asked.get(credential) ?? 0) + 1);
    request.resume().on("end", () => {
      if (refused.has(credential)) return answer(response);
      refused.set(credential, performance.now());
      refuse(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server has an AddressInfo.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    refusedAt: (credential) => refused.get(credential),
    asked: (credential) => asked.get(credential) ?? 0,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

let asked = 0;

/** Sends one request to a gateway and reads the response to its end. */
const ask = ({ url }: Contender, credential: string): Promise<void> =>
  new Promise((resolve, reject) => {
    asked += 1;
    const { body, path } = wires.chat;
    const headers = { authorization: credential, "content-type": "application/json" };
    httpRequest(`${url}${path}`, { method: "POST", headers })
      .on("error", reject)
      // A broken response counts as an answer too.
      .on("response", (response) => response.resume().on("close", resolve))
      .end(JSON.stringify(body(`n=${asked}`)));
  });

/** Measures one wait: milliseconds from the provider's refusal to the start of the first request that the other gateway holds. */
const trial = async (provider: Refusing, [one, other]: readonly [Contender, Contender], n: number): Promise<number> => {
  const credential = `Bearer sk-bench-cooldown-${String(n).padStart(8, "0")}`;
  const first = ask(one, credential);
  while (provider.refusedAt(credential) === undefined) await new Promise(setImmediate);
  const from = provider.refusedAt(credential) ?? 0;
  for (;;) {
    const [sentAt, before] = [performance.now(), provider.asked(credential)];
    await ask(other, credential);
    if (provider.asked(credential) === before || sentAt - from > askedMs) {
      await first;
      return sentAt - from;
    }
  }
};

/** Measures `trials` waits, each with a new credential. */
export const cooldowns = async (server: Server, trials: number): Promise<ReadonlyArray<number>> => {
  const database = "cooldowns";
  server.create(database);
  const provider = await refusing();
  const store = { db: server.address(database) };
  const one = await gateway("the gateway that is refused", provider.url, store, flags);
  const other = await gateway("the other gateway", provider.url, store, flags);
  const found: Array<number> = [];
  // The first three warm up the code.
  for (let n = 0; n < trials + 3; n += 1) {
    const ms = await trial(provider, [one, other], n);
    if (n >= 3) found.push(ms);
  }
  await one.end();
  await other.end();
  provider.close();
  return found;
};
