// `http-proxy` before the provider, with connections kept alive: without an agent it opens one for each request.
// Plain JavaScript: its package is installed only when the bench is asked for it, so there are no types to check against.
import { Agent, createServer } from "node:http";
import httpProxy from "http-proxy";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const proxy = httpProxy.createProxyServer({ target: process.argv[2], agent });
proxy.on("error", (_error, _request, response) => response.destroy());

const server = createServer((request, response) => proxy.web(request, response));
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
