// `@llmops/gateway` as the server that its package leaves to its user: it exports a Hono application and no program.
// It learns its provider from two headers of each request, and takes a loopback host as one to trust.
// Plain JavaScript: its package is installed only when the bench is asked for it, so there are no types to check against.
import { serve } from "@hono/node-server";
import gateway from "@llmops/gateway";

serve({ fetch: gateway.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  console.log(`listening on http://127.0.0.1:${port}`),
);
