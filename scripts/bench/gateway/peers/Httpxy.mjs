// `httpxy` in front of the provider: `node Httpxy.mjs URL PORT`.
// Plain JavaScript, because its package is installed only on request, so there are no types to check against.
import { Agent, createServer } from "node:http";
import { createProxyServer } from "httpxy";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const proxy = createProxyServer({ target: process.argv[2], agent });

const server = createServer((request, response) => {
  proxy.web(request, response).catch(() => response.destroy());
});
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`),
);
