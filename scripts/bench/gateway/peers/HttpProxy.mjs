// `http-proxy` in front of the provider. Without the agent it would open a new connection for each request.
// Plain JavaScript, because its package is installed only on request, so there are no types to check against.
import { Agent, createServer } from "node:http";
import httpProxy from "http-proxy";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const proxy = httpProxy.createProxyServer({ target: process.argv[2], agent });
proxy.on("error", (_error, _request, response) => response.destroy());

const server = createServer((request, response) => proxy.web(request, response));
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
