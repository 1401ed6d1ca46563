/**
 * Asks a contender for streams and sees what arrives when: the client of the gateway's bench.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type Protocol, stamp, stampsIn, wires } from "./Wires.ts";

/** Where streams are asked for, and the headers that it wants to see. */
export interface Target {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** So many streams at one time, of so many events, one each so many milliseconds. */
export interface Paced {
  readonly streams: number;
  readonly events: number;
  readonly everyMs: number;
  /** Between the starts of two streams; left out, so that the events of all are spread evenly. */
  readonly apartMs?: number;
  /** The first event comes with the provider's head; left out, it comes as one of the others. */
  readonly atOnce?: boolean;
}

/**
 * So many streams of so many events, which come at once, each written by itself or all in one piece; so many at one time. Those of `again`
 * break once before.
 */
export interface Burst {
  readonly play: "burst" | "piece" | "again";
  readonly streams: number;
  readonly events: number;
  readonly concurrent: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 4096 });
const filler = "x".repeat(2000);
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Asks for one stream. @param play what the provider is to play: it stands in the prompt, which every contender hands on */
const ask = ({ headers, url }: Target, protocol: Protocol, play: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const wire = wires[protocol];
    const body = JSON.stringify(wire.body(`play=${play} ${filler}`));
    const request = httpRequest(`${url}${wire.path}`, {
      method: "POST",
      agent,
      headers: { ...wire.headers, "content-type": "application/json", "content-length": body.length, ...headers },
    });
    request.on("error", reject).on("response", (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${url} answered ${response.statusCode}`));
    });
    request.end(body);
  });

/** Numbers each stream, so that no contender takes one for the repetition of another. */
let asked = 0;
const next = (): number => {
  asked += 1;
  return asked;
};

/** Bytes of a whole stream. */
export const lengthOf = (protocol: Protocol, events: number): number => {
  const { begin, delta, end } = wires[protocol];
  return begin.length + events * delta(stamp(0n), 0).length + end(events).length;
};

/** Reads a stream to its end. A contender that loses what was asked for is not a fast one. @throws Error where it is short */
const readWhole = async (
  response: IncomingMessage,
  leastBytes: number,
  seen: (chunk: Buffer) => void = () => undefined,
): Promise<void> => {
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    seen(chunk);
  }
  if (!response.complete || bytes < leastBytes)
    throw new Error(`a stream broke, or is short: ${bytes} of ${leastBytes} bytes`);
};

/** Plays paced streams to their ends. */
export const playPaced = async (
  target: Target,
  protocol: Protocol,
  paced: Paced,
  seen?: { readonly head: (ms: number) => void; readonly chunk: (chunk: Buffer, stream: number) => void },
): Promise<void> => {
  const leastBytes = lengthOf(protocol, paced.events);
  const apartMs = paced.apartMs ?? paced.everyMs / paced.streams;
  const first = paced.atOnce === true ? "&first=at_once" : "";
  const play = `paced&events=${paced.events}&every=${paced.everyMs}${first}`;
  const one = async (n: number) => {
    await pause(n * apartMs);
    const started = now();
    const response = await ask(target, protocol, `${play}&n=${next()}`);
    seen?.head(now() - started);
    await readWhole(response, leastBytes, (chunk) => seen?.chunk(chunk, n));
  };
  await Promise.all(Array.from({ length: paced.streams }, (_, n) => one(n)));
};

/** Plays whole streams, and gives how many a second there were. */
export const playBurst = async (target: Target, protocol: Protocol, burst: Burst): Promise<number> => {
  const leastBytes = lengthOf(protocol, burst.events);
  const started = now();
  let begun = 0;
  const worker = async () => {
    while (begun < burst.streams) {
      begun += 1;
      await readWhole(await ask(target, protocol, `${burst.play}&events=${burst.events}&n=${next()}`), leastBytes);
    }
  };
  await Promise.all(Array.from({ length: burst.concurrent }, worker));
  return burst.streams / ((now() - started) / 1000);
};

/** Milliseconds that each took: a head from its request on, content from the provider's write to the client's read. */
export interface Lateness {
  /** Of responses whose first content comes with the provider's head. */
  readonly heads: Array<number>;
  /** Of responses whose first content comes a pace behind it: a gateway that withholds the head until then is later by that pace. */
  readonly bare: Array<number>;
  readonly firsts: Array<number>;
  readonly events: Array<number>;
}

/** Plays paced streams side by side and adds how late they were: the machine is busy and not full. */
export const lateness = async (target: Target, protocol: Protocol, paced: Paced, late: Lateness): Promise<void> => {
  const begun = new Set<number>();
  await playPaced(
    target,
    protocol,
    { ...paced, events: 2 },
    { head: (ms) => late.bare.push(ms), chunk: () => undefined },
  );
  await playPaced(
    target,
    protocol,
    { ...paced, atOnce: true },
    {
      head: (ms) => late.heads.push(ms),
      chunk: (chunk, stream) => {
        const at = now();
        for (const written of stampsIn(chunk.toString())) {
          const taken = at - written / 1e6;
          if (!begun.has(stream)) late.firsts.push(taken);
          begun.add(stream);
          late.events.push(taken);
        }
      },
    },
  );
};

/**
 * Streams that a contender has served before it is measured. V8 gives a function to its last compiler after 3,000 calls
 * (`--invocation-count-for-turbofan`), and most of what a gateway does is called once a stream, some of it only behind what had to be
 * compiled before: from some 12,000 streams on their cost stays as it is.
 */
const warmStreams = 15_000;

/**
 * Plays what a contender must have seen before it is measured: code that is compiled while it runs, connections, and everything
 * that is made at first use.
 */
export const warmUp = async (target: Target, protocol: Protocol): Promise<void> => {
  await playBurst(target, protocol, { play: "burst", streams: warmStreams, events: 20, concurrent: 16 });
  await playPaced(target, protocol, { streams: 50, events: 30, everyMs: 20 });
};

/** How long a contender has for what it does with a request whose response it holds back. */
const unshownMs = 2000;

/**
 * Opens streams and keeps them, until their contender ends.
 *
 * @param shown waits until each has shown something; a contender that holds a response back shows nothing
 */
export const hold = async (target: Target, protocol: Protocol, streams: number, shown: boolean): Promise<void> => {
  const open = (): Promise<void> =>
    new Promise((seen, reject) => {
      ask(target, protocol, `open&n=${next()}`).then((response) => {
        response
          .on("error", () => undefined)
          .on("data", (chunk: Buffer) => {
            if (stampsIn(chunk.toString()).length > 0) seen();
          });
      }, reject);
    });
  if (!shown) {
    for (let begun = 0; begun < streams; begun += 1) open().catch(() => undefined);
    return pause(unshownMs);
  }
  let begun = 0;
  const worker = async () => {
    while (begun < streams) {
      begun += 1;
      await open();
    }
  };
  await Promise.all(Array.from({ length: 64 }, worker));
};
