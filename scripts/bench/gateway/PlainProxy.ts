/**
 * The minimal Node proxy that the gateway is compared with. It forwards headers and bytes without parsing, over keep-alive connections on
 * both sides. Runs as a separate process: `node PlainProxy.ts URL [PORT]`.
 */
import { Agent, createServer, request as httpRequest } from "node:http";

const upstream = process.argv[2] ?? "";
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 1024 });

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", upstream);
  const onward = httpRequest(url, {
    method: request.method ?? "GET",
    agent,
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
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`);
});
