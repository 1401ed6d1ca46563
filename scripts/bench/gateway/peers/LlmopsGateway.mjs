// Serves `@llmops/gateway`, which exports only a Hono application.
// Two headers of each request select its provider, and it trusts a loopback host.
// Plain JavaScript, because its package is installed only on request, so there are no types to check against.
import { serve } from "@hono/node-server";
import gateway from "@llmops/gateway";

serve({ fetch: gateway.fetch, port: Number(process.argv[3] ?? 0), hostname: "127.0.0.1" }, ({ port }) =>
  console.log(`listening on http://127.0.0.1:${port}`),
);
