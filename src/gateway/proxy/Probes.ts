/**
 * Answers the probes of an orchestrator: `/livez` while the process is alive, `/readyz` while it accepts requests. Probes need no token,
 * and their responses reveal nothing else.
 */
import { Effect } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { StoreState } from "../api/StoreHealth.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import { isProbeHost, type Refused } from "../routing/Admission.ts";
import type { ClientResponse } from "./ClientResponse.ts";

/** The state that the probes report. */
export interface ProbeServing {
  readonly settings: Pick<GatewaySettings, "allowedHosts" | "local" | "requireStore">;
  readonly store: () => StoreState;
  /** Returns true once a shutdown has begun. */
  readonly draining: () => boolean;
}

/** Recognises a probe by its exact path; undefined for any other target. */
export const probeOf = (target: string): "livez" | "readyz" | undefined => {
  const [path] = target.split("?", 1);
  return path === "/livez" ? "livez" : path === "/readyz" ? "readyz" : undefined;
};

/** Status and body of the response to a probe. */
export interface ProbeVerdict {
  readonly status: 200 | 503;
  readonly body: { readonly status: "ok" | "degraded" | "draining"; readonly degraded?: "store" };
}

/**
 * Determines the response to a probe. A process that drains is alive but not ready. A process whose store is unavailable stays ready,
 * unless the store is required.
 *
 * @param requireStore true if the gateway is not ready while its store accepts no writes
 */
export const verdictOf = (
  probe: "livez" | "readyz",
  {
    draining,
    requireStore,
    writes,
  }: { readonly draining: boolean; readonly requireStore: boolean } & Pick<StoreState, "writes">,
): ProbeVerdict => {
  if (probe === "livez") return { status: 200, body: { status: "ok" } };
  if (draining) return { status: 503, body: { status: "draining" } };
  // A slow store is no reason to move traffic to another process. The API's health endpoint reports it.
  if (writes !== "failing") return { status: 200, body: { status: "ok" } };
  return { status: requireStore ? 503 : 200, body: { status: "degraded", degraded: "store" } };
};

/** Serves a probe. The request may be refused because of its Host. */
export const serveProbe = (
  probe: "livez" | "readyz",
  { headers, method }: { readonly headers: RelayHeaders; readonly method: string },
  client: ClientResponse,
  { draining, settings, store }: ProbeServing,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { writes } = store();
    client.access.markOwn();
    const refused =
      method !== "GET" && method !== "HEAD" ? noMethod : isProbeHost(headers, settings) ? undefined : noHost;
    if (refused !== undefined) {
      client.refuse(refused, undefined);
      return client.end;
    }
    const { body, status } = verdictOf(probe, { draining: draining(), requireStore: settings.requireStore, writes });
    const bytes = new TextEncoder().encode(`${JSON.stringify(body)}\n`);
    client.head({
      status,
      statusText: status === 200 ? "OK" : "Service Unavailable",
      headers: headersOf(bytes.byteLength),
    });
    return Effect.andThen(method === "HEAD" ? Effect.void : client.write([bytes]), client.end);
  });

const headersOf = (length: number): RelayHeaders => [
  ["content-type", "application/json"],
  ["content-length", String(length)],
  ["cache-control", "no-store"],
  ["x-content-type-options", "nosniff"],
];

const noMethod: Refused = {
  status: 405,
  reason: "method",
  message: "A probe is a GET or a HEAD.",
  headers: [["allow", "GET, HEAD"]],
};

const noHost: Refused = {
  status: 403,
  reason: "host",
  message: "The gateway does not serve this Host; --allow-host permits more.",
};
