/**
 * The client of the gateway bench: requests streams from a contender and measures when each part arrives.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type Protocol, stamp, stampsIn, wires } from "./Wires.ts";

/** The address of a contender, and additional headers that it needs. */
export interface Target {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Concurrent streams with one event every `everyMs` milliseconds. */
export interface Paced {
  readonly streams: number;
  readonly events: number;
  readonly everyMs: number;
  /** Interval between the starts of two streams. By default the events of all streams are spread evenly. */
  readonly apartMs?: number;
  /** True if the first event comes with the provider's head. By default it comes one interval later. */
  readonly atOnce?: boolean;
}

/**
 * Streams whose events come all at once, written one by one (`burst`) or in one piece (`piece`), with a limit on concurrency. Those of
 * `again` break once first.
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

/** Requests one stream. @param play selects the provider's play; it is part of the prompt, which every contender forwards */
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

/** Number of the last stream. It makes each request unique, so that no contender takes one for a repeat of another. */
let asked = 0;
const next = (): number => {
  asked += 1;
  return asked;
};

/** Length of a whole stream, in bytes. */
export const lengthOf = (protocol: Protocol, events: number): number => {
  const { begin, delta, end } = wires[protocol];
  return begin.length + events * delta(stamp(0n), 0).length + end(events).length;
};

/** Reads a stream to its end, and checks that a contender is not fast because it loses data. @throws Error if it is short */
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
    throw new Error(`a stream broke or is too short: ${bytes} of ${leastBytes} bytes`);
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

/** Plays whole streams, and returns their rate per second. */
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

/** Delays in milliseconds: of a head since its request, and of content from the provider's write to the client's read. */
export interface Lateness {
  /** Heads of responses whose first content comes with the provider's head. */
  readonly heads: Array<number>;
  /** Heads of responses whose first content comes one interval later. A gateway that withholds the head until then is that much later. */
  readonly bare: Array<number>;
  readonly firsts: Array<number>;
  readonly events: Array<number>;
}

/** Plays paced streams side by side and records their delays. The load keeps the machine busy but not saturated. */
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
 * Number of streams that a contender serves before it is measured. V8 optimises a function fully after 3,000 calls
 * (`--invocation-count-for-turbofan`). Most functions of a gateway are called once per stream, and some are called only after others were
 * optimised, so the cost per stream settles after about 12,000 streams.
 */
const warmStreams = 15_000;

/**
 * Warms up a contender before it is measured: compiled code, connections, and everything that is created at first use.
 */
export const warmUp = async (target: Target, protocol: Protocol): Promise<void> => {
  await playBurst(target, protocol, { play: "burst", streams: warmStreams, events: 20, concurrent: 16 });
  await playPaced(target, protocol, { streams: 50, events: 30, everyMs: 20 });
};

/** Time that a contender has to process requests whose responses it holds back, in milliseconds. */
const unshownMs = 2000;

/**
 * Opens streams and keeps them open until their contender ends.
 *
 * @param shown true to wait until each stream has shown something; a contender that holds responses back shows nothing
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
