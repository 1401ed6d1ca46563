/**
 * Starts nginx and haproxy in front of the gateway and of the stand-in.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Effect, type Scope } from "effect";
import { freePort } from "../programs/FreePort.ts";
import { hasCommand, type Need } from "./Packages.ts";

/** The paths from a client to the gateway. By default nginx uses HTTP/1.0 for its upstreams. */
export const ways = ["direct", "nginx", "nginx-1.0", "haproxy"] as const;
/** One of the paths. */
export type Way = (typeof ways)[number];

/** The requirements of each path. */
export const needs: Readonly<Record<Way, Need>> = {
  direct: { commands: [], packages: [] },
  nginx: { commands: ["nginx"], packages: ["nginx"] },
  "nginx-1.0": { commands: ["nginx"], packages: ["nginx"] },
  haproxy: { commands: ["haproxy"], packages: ["haproxy"] },
};

/** The ports of a path. */
export interface Ports {
  readonly standIn: number;
  readonly gateway: number;
}

/** Timeout for a proxy to listen, in milliseconds. */
const startMs = 10_000;

/** Starts the proxies that are installed, and returns the ports of each path. */
export const startProxies = Effect.fnUntraced(function* (
  to: Ports,
  folder: string,
): Effect.fn.Return<ReadonlyMap<Way, Ports>, never, Scope.Scope> {
  const found = new Map<Way, Ports>([["direct", to]]);
  for (const way of ways) {
    if (way === "direct" || !hasCommand(needs[way])) continue;
    const ports = { standIn: yield* freePort, gateway: yield* freePort };
    const file = join(folder, `${way}.conf`);
    writeFileSync(file, way === "haproxy" ? haproxy(ports, to) : nginx(way, ports, to, folder));
    const args = way === "haproxy" ? ["-db", "-f", file] : ["-c", file, "-e", join(folder, "nginx.log")];
    const command = way === "haproxy" ? "haproxy" : "nginx";
    yield* Effect.acquireRelease(
      Effect.sync(() => spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] })),
      (child) => Effect.sync(() => child.kill("SIGKILL")),
    );
    yield* Effect.promise(() => waitUntilListening(ports.gateway));
    found.set(way, ports);
  }
  return found;
});

const nginx = (way: Way, ports: Ports, to: Ports, folder: string): string => {
  const server = (from: number, port: number): string => `
  server {
    listen 127.0.0.1:${from};
    location / {
      proxy_pass http://127.0.0.1:${port};
      ${way === "nginx" ? 'proxy_http_version 1.1; proxy_set_header Connection "";' : ""}
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
    }
  }`;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
  return `daemon off; master_process off; pid ${join(folder, `${way}.pid`)};
events {}
http {
  access_log off; ${temporary.join(" ")}${server(ports.standIn, to.standIn)}${server(ports.gateway, to.gateway)}
}
`;
};

const haproxy = (ports: Ports, to: Ports): string => {
  const listen = (name: keyof Ports): string => `
listen ${name}
  bind 127.0.0.1:${ports[name]}
  server ${name} 127.0.0.1:${to[name]}`;
  return `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
${listen("standIn")}
${listen("gateway")}
`;
};

const waitUntilListening = async (port: number): Promise<void> => {
  for (const until = Date.now() + startMs; ; await sleep(50)) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (isOpen) return;
    if (Date.now() > until) throw new Error(`no proxy listens on ${port}`);
  }
};
