/**
 * Plays the two ends that a gateway is measured between and against: a provider that stamps its events, and a proxy that does
 * nothing but hand bytes on. Started by `Gateway.ts`, each as a process of its own: `node GatewayPeers.ts provider|proxy [URL]`.
 */
import { createServer, request as httpRequest, type ServerResponse } from "node:http";
import { setInterval as every } from "node:timers";

/** Nanoseconds of the clock that all processes of a machine share. */
const stamp = (): string => process.hrtime.bigint().toString();

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const end = `${chunk({}, "stop")}data: [DONE]\n\n`;

/** What a request asks this provider for, in the `user` of its body. */
interface Wanted {
  /** `paced`: an event every so many milliseconds. `burst`: all at once. `open`: one event, and nothing more. */
  readonly play: string;
  readonly events: number;
  readonly everyMs: number;
}

const play = (response: ServerResponse, { events, everyMs, play }: Wanted): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk({ role: "assistant" }));
  if (play === "open") {
    response.write(chunk({ content: stamp() }));
    return;
  }
  if (play === "burst") {
    response.end(Array.from({ length: events }, () => chunk({ content: stamp() })).join("") + end);
    return;
  }
  let sent = 0;
  const timer = every(() => {
    sent += 1;
    response.write(chunk({ content: stamp() }));
    if (sent < events) return;
    clearInterval(timer);
    response.end(end);
  }, everyMs);
  response.on("close", () => clearInterval(timer));
};

const provider = createServer((request, response) => {
  let body = "";
  request.on("data", (bytes: Buffer) => {
    body += String(bytes);
  });
  request.on("end", () => {
    const wanted = new URLSearchParams(/"user":"(play=[^"]*)"/.exec(body)?.[1]);
    play(response, {
      play: wanted.get("play") ?? "burst",
      events: Number(wanted.get("events") ?? 1),
      everyMs: Number(wanted.get("every") ?? 10),
    });
  });
});

/** The least that a proxy does: headers and bytes through, one connection for each request. */
const proxy = (upstream: string) =>
  createServer((request, response) => {
    const url = new URL(request.url ?? "/", upstream);
    const onward = httpRequest(url, {
      method: request.method ?? "GET",
      headers: { ...request.headers, host: url.host },
    });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });

const [what, upstream = ""] = process.argv.slice(2);
const server = what === "proxy" ? proxy(upstream) : provider;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`);
});
