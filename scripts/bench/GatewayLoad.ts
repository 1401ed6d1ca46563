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

const body = JSON.stringify({ model: "bench", messages: [{ role: "user", content: "x".repeat(2000) }], stream: true });

const now = (): number => Number(process.hrtime.bigint()) / 1e6;

const ask = (base: string, query: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(`${base}/v1/chat/completions?${query}`, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json", "content-length": body.length },
    });
    request.on("error", reject).on("response", resolve);
    request.end(body);
  });

/** Milliseconds that each event has taken. */
const stamps = (chunk: Buffer, at: number): ReadonlyArray<number> =>
  [...chunk.toString().matchAll(/"content":"(\d+)"/g)].map(([, ns]) => at - Number(ns) / 1e6);

/** Milliseconds between the starts of two streams: what is measured is a stream, not the queue of all that start at once. */
const apartMs = 13;

/** Paced streams side by side, so that the machine is busy and not full. */
export const latency = async (base: string, streams: number, events: number): Promise<Latency> => {
  const [heads, firsts, all]: [Array<number>, Array<number>, Array<number>] = [[], [], []];
  const one = async (n: number) => {
    await pause(n * apartMs);
    const started = now();
    const response = await ask(base, `play=paced&events=${events}&every=20&n=${n}`);
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

/** Whole streams of 20 events a second, so many at one time. */
export const throughput = async (base: string, streams: number, concurrent: number): Promise<number> => {
  const started = now();
  let next = 0;
  const worker = async () => {
    while (next < streams) {
      next += 1;
      const response = await ask(base, `play=burst&events=20&n=${next}`);
      for await (const _ of response);
      if (!response.complete) throw new Error(`a stream of ${base} broke`);
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
export const hold = async (base: string, streams: number, shown: boolean): Promise<() => void> => {
  const responses: Array<IncomingMessage> = [];
  let next = 0;
  const worker = async () => {
    while (next < streams) {
      next += 1;
      const response = await ask(base, `play=open&n=${next}`);
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
