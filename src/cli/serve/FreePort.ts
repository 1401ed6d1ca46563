/**
 * Finds the port that all workers share. The supervisor searches for it. So a taken port is reported only once, and if the options leave
 * the port open, all workers get the same one.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { Effect } from "effect";
import { GatewayError, type GatewaySettings } from "../../gateway/config/GatewayOptions.ts";

/**
 * Ports below the ephemeral range. Linux starts that range at 32,768 (`ip_local_port_range`), other systems at 49,152 (RFC 6335, section
 * 6), and Kubernetes reserves 30,000 to 32,767 for its services. An ephemeral port could be assigned to a connection between this search
 * and the start of the first worker.
 */
const quietPorts = { first: 20_000, last: 29_999 } as const;

/** Number of random ports to try before any free port is accepted. */
const triesMax = 16;

/** Checks that the requested port is free, or finds a free port if the requested one is 0. */
export const freePort = ({
  host,
  port,
}: Pick<GatewaySettings, "host" | "port">): Effect.Effect<number, GatewayError> =>
  port === 0 ? anyPort(host, triesMax) : openPort(host, port);

const anyPort = (host: string, tries: number): Effect.Effect<number, GatewayError> =>
  tries === 0
    ? openPort(host, 0)
    : Effect.catch(
        Effect.suspend(() => openPort(host, randomInt(quietPorts.first, quietPorts.last + 1))),
        () => anyPort(host, tries - 1),
      );

const openPort = (host: string, port: number): Effect.Effect<number, GatewayError> =>
  Effect.callback((resume) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}:${port} (${error.code ?? "unknown"})`;
      resume(Effect.fail(new GatewayError({ reason: "cannot_listen", message })));
    });
    server.listen(port, host, () => {
      const address = server.address();
      const found = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resume(Effect.succeed(found)));
    });
  });
