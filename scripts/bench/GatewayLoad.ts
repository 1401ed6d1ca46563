/**
 * Asks one address for streams and measures what arrives when: the client of the gateway's bench.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { quantile } from "./Median.ts";

/** Milliseconds from the provider's write to the client's read. */
export interface Latency {
  readonly headP50: number;
  readonly headP99: number;
  readonly firstP50: number;
  readonly firstP99: number;
  readonly eventP50: number;
  readonly eventP99: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** Where streams are asked for, and the headers that it wants to see. */
export interface Target {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const messages = [{ role: "user", content: "x".repeat(2000) }];

const now = (): number => Number(process.hrtime.bigint()) / 1e6;

/** @param play what the provider is to play; in `user`, which every contender hands on: some drop a query or unknown fields */
const ask = ({ headers, url }: Target, play: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ model: "bench", messages, stream: true, user: play });
    const request = httpRequest(`${url}/v1/chat/completions`, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json", "content-length": body.length, ...headers },
    });
    request.on("error", reject).on("response", (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${url} answered ${response.statusCode}`));
    });
    request.end(body);
  });

/** Milliseconds that each event has taken. */
const stamps = (chunk: Buffer, at: number): ReadonlyArray<number> =>
  [...chunk.toString().matchAll(/"content":"(\d+)"/g)].map(([, ns]) => at - Number(ns) / 1e6);

/** Milliseconds between the starts of two streams: what is measured is a stream, not the queue of all that start at once. */
const apartMs = 13;

/** Paced streams side by side, so that the machine is busy and not full. */
export const latency = async (target: Target, streams: number, events: number): Promise<Latency> => {
  const [heads, firsts, all]: [Array<number>, Array<number>, Array<number>] = [[], [], []];
  const one = async (n: number) => {
    await pause(n * apartMs);
    const started = now();
    const response = await ask(target, `play=paced&events=${events}&every=20&n=${n}`);
    heads.push(now() - started);
    let first = true;
    for await (const chunk of response) {
      const taken = stamps(chunk, now());
      if (first && taken[0] !== undefined) {
        firsts.push(taken[0]);
        first = false;
      }
      all.push(...taken);
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, n) => one(n)));
  return {
    headP50: quantile(heads, 0.5),
    headP99: quantile(heads, 0.99),
    firstP50: quantile(firsts, 0.5),
    firstP99: quantile(firsts, 0.99),
    eventP50: quantile(all, 0.5),
    eventP99: quantile(all, 0.99),
  };
};

/** Bytes that a stream of 20 events has more than: a contender that loses what was asked for is not a fast one. */
const leastBytes = 1200;

/** Whole streams of 20 events a second, so many at one time. */
export const throughput = async (target: Target, streams: number, concurrent: number): Promise<number> => {
  const started = now();
  let next = 0;
  const worker = async () => {
    while (next < streams) {
      next += 1;
      const response = await ask(target, `play=burst&events=20&n=${next}`);
      let bytes = 0;
      for await (const chunk of response) bytes += Buffer.byteLength(chunk);
      if (!response.complete || bytes < leastBytes) throw new Error(`a stream of ${target.url} broke or is short`);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, worker));
  return streams / ((now() - started) / 1000);
};

/**
 * Opens streams and keeps them; closes them when told to.
 *
 * @param shown waits until each has shown something, not only its head
 */
export const hold = async (target: Target, streams: number, shown: boolean): Promise<() => void> => {
  const responses: Array<IncomingMessage> = [];
  let next = 0;
  const worker = async () => {
    while (next < streams) {
      next += 1;
      const response = await ask(target, `play=open&n=${next}`);
      responses.push(response);
      response.on("error", () => undefined);
      if (!shown) response.resume();
      else
        await new Promise<void>((seen) => {
          response.on("data", (chunk: Buffer) => {
            if (chunk.includes("content")) seen();
          });
        });
    }
  };
  await Promise.all(Array.from({ length: 64 }, worker));
  return () => {
    for (const response of responses) response.destroy();
  };
};
