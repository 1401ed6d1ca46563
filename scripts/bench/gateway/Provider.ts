/**
 * The provider that all contenders use, as a separate process: `node Provider.ts`. It stamps each delta with its write time, and plays the
 * stream that the prompt of a request describes. Every contender forwards the prompt.
 */
import { createServer, type ServerResponse } from "node:http";
import { protocolOf, stamp, type Wire, wires } from "./Wires.ts";

/** The stream that a prompt describes, for example `play=paced&events=150&every=20`. */
interface Wanted {
  /**
   * `paced`: one event per interval. `burst`: all events at once, each in its own write, like a provider whose model is ahead. `piece`:
   * all events in one write. `open`: one event, and then nothing. `again`: a burst at the second request with this number; the first
   * request breaks after its head.
   */
  readonly play: string;
  /** The number of the stream. */
  readonly n: string;
  readonly events: number;
  readonly everyMs: number;
  /** True if the first delta comes with the head instead of one interval later. */
  readonly atOnce: boolean;
}

const wantedOf = (body: string): Wanted => {
  const wanted = new URLSearchParams(/play=[\w=&]*/.exec(body)?.[0]);
  return {
    play: wanted.get("play") ?? "burst",
    n: wanted.get("n") ?? "",
    events: Number(wanted.get("events") ?? 1),
    everyMs: Number(wanted.get("every") ?? 10),
    atOnce: wanted.get("first") === "at_once",
  };
};

/** Streams that were broken and not retried yet; at most as many as a client has in flight. */
const broken = new Set<string>();

const play = (response: ServerResponse, wire: Wire, { atOnce, events, everyMs, n, play }: Wanted): void => {
  const delta = (at: number): string => wire.delta(stamp(process.hrtime.bigint()), at);
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (play === "again" && !broken.delete(n)) {
    broken.add(n);
    response.flushHeaders();
    setTimeout(() => response.destroy(), everyMs);
    return;
  }
  if (play === "piece") {
    response.end(wire.begin + Array.from({ length: events }, (_, at) => delta(at)).join("") + wire.end(events));
    return;
  }
  response.write(atOnce ? wire.begin + delta(0) : wire.begin);
  if (play === "burst" || play === "again") {
    for (let at = 0; at < events; at += 1) response.write(delta(at));
    response.end(wire.end(events));
    return;
  }
  if (play === "open") {
    response.write(delta(0));
    return;
  }
  let sent = atOnce ? 1 : 0;
  const timer = setInterval(() => {
    response.write(delta(sent));
    sent += 1;
    if (sent < events) return;
    clearInterval(timer);
    response.end(wire.end(events));
  }, everyMs);
  response.on("close", () => clearInterval(timer));
};

const server = createServer((request, response) => {
  const bodies: Array<Buffer> = [];
  request.on("data", (bytes: Buffer) => bodies.push(bytes));
  request.on("end", () => {
    play(response, wires[protocolOf(request.url ?? "")], wantedOf(Buffer.concat(bodies).toString()));
  });
});
// Never closes idle connections, so that no contender pays for a reconnect that another avoids.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`);
});
