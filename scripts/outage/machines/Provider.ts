/**
 * The machine of a provider. It speaks Chat Completions, plays the scenario that a request's text names, and prints each observation as
 * a line of JSON.
 *
 * `steady N`: text at once, then a delta every half second for N seconds. `mute N`: the first request with this text gets no head, later
 * ones are answered like `steady`.
 */
import { createServer, type ServerResponse } from "node:http";

const say = (line: object): void => console.log(JSON.stringify({ at: Date.now(), ...line }));

const delta = (content: string): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;

const end = `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;

const seen = new Map<string, number>();

const steady = (response: ServerResponse, seconds: number, request: number): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let left = seconds * 2;
  response.write(delta(`r${request}. `));
  const timer = setInterval(() => {
    left -= 1;
    response.write(delta(`${left} `));
    if (left > 0) return;
    clearInterval(timer);
    response.end(end);
  }, 500);
  response.on("close", () => clearInterval(timer));
};

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => {
    body += text;
  });
  request.on("end", () => {
    const [, how = "steady", seconds = "0"] = /"(steady|mute) ?(\d*)"/.exec(body) ?? [];
    const nth = (seen.get(body) ?? 0) + 1;
    seen.set(body, nth);
    say({ request: how, nth });
    response.on("close", () => say({ closed: how, nth, whole: response.writableFinished }));
    if (how === "mute" && nth === 1) return;
    steady(response, Number(seconds), nth);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), "0.0.0.0", () => say({ listening: true }));
