/**
 * Starts the gateways and proxies of the scoreboard, each in front of one provider port.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, openSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Where a gateway listens and forwards to. `folder` is for its files. */
export interface Place {
  readonly port: number;
  readonly upstreamPort: number;
  readonly folder: string;
}

/** A gateway or proxy that can be put between an SDK and a provider. */
export interface GatewayUnderTest {
  readonly name: string;
  /** The command that starts it; undefined if it is not installed here. `undefined` for both: no gateway. */
  readonly command?: (place: Place) => ReadonlyArray<string> | undefined;
  /** Headers that each request needs, by protocol. */
  readonly headers?: (protocol: string, upstream: string) => ReadonlyArray<string>;
  readonly install?: string;
}

/**
 * Time without a byte after which a gateway that has such a timeout gives up, in milliseconds. The defaults (60 s and more) would let every
 * stalled turn end at the kit's limit.
 */
const silenceMsMax = 6_000;

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const peers = pathOf("../bench/gateway/peers");
const origin = ({ upstreamPort }: Place): string => `http://127.0.0.1:${upstreamPort}`;

const ours =
  (...flags: ReadonlyArray<string>) =>
  (place: Place): ReadonlyArray<string> => [
    process.execPath,
    "--no-warnings",
    pathOf("../../dist/cli/bin.js"),
    "serve",
    ...["--clock", `idle=${silenceMsMax},first_progress=${silenceMsMax}`],
    ...["--port", String(place.port), "--db", "memory"],
    ...["--openai-url", `${origin(place)}/v1`, "--anthropic-url", origin(place), "--gemini-url", origin(place)],
    ...flags,
  ];

const fromNpm =
  (name: string, program: string) =>
  (place: Place): ReadonlyArray<string> | undefined =>
    existsSync(join(peers, "node_modules", name))
      ? [process.execPath, join(peers, program), origin(place), String(place.port)]
      : undefined;

/** Headers that name a provider and its address to @llmops/gateway, a fork of Portkey's. */
const llmopsHeaders = (protocol: string, upstream: string): ReadonlyArray<string> => [
  `x-llmops-provider: ${protocol === "anthropic-messages" ? "anthropic" : "openai"}`,
  `x-llmops-custom-host: ${upstream}/v1`,
];

const installPeers = "npm run scoreboard -- --install";

/** The gateways, in the order of the table. */
export const gateways: ReadonlyArray<GatewayUnderTest> = [
  { name: "no gateway" },
  { name: "this gateway", command: ours() },
  { name: "this gateway, `on_complete`", command: ours("--reveal", "on_complete") },
  {
    name: "plain Node proxy",
    command: (place) => [process.execPath, pathOf("../bench/gateway/PlainProxy.ts"), origin(place), String(place.port)],
  },
  { name: "httpxy", command: fromNpm("httpxy", "Httpxy.mjs"), install: installPeers },
  {
    name: "@llmops/gateway",
    command: fromNpm("@llmops/gateway", "LlmopsGateway.mjs"),
    headers: llmopsHeaders,
    install: installPeers,
  },
  { name: "nginx", command: nginx, install: "apt-get install nginx-light" },
  { name: "haproxy", command: haproxy, install: "apt-get install haproxy" },
];

function nginx(place: Place): ReadonlyArray<string> | undefined {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const file = join(place.folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${place.folder};`,
  );
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${join(place.folder, "nginx.pid")};
events {}
http {
  access_log off; ${temporary.join(" ")}
  server {
    listen 127.0.0.1:${place.port};
    location / {
      proxy_pass ${origin(place)}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_read_timeout ${silenceMsMax}ms;
    }
  }
}
`,
  );
  return ["nginx", "-c", file, "-e", join(place.folder, "nginx.log")];
}

function haproxy(place: Place): ReadonlyArray<string> | undefined {
  if (spawnSync("haproxy", ["-v"]).status !== 0) return undefined;
  const file = join(place.folder, "haproxy.conf");
  writeFileSync(
    file,
    `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server ${silenceMsMax}ms
listen gateway
  bind 127.0.0.1:${place.port}
  server provider 127.0.0.1:${place.upstreamPort}
`,
  );
  return ["haproxy", "-db", "-f", file];
}

/** Time limit for a gateway to listen, in milliseconds. */
const startMs = 60_000;

/** Starts a gateway and waits until it listens. Its output goes to a log in its folder. */
export const start = async (command: ReadonlyArray<string>, place: Place): Promise<ChildProcess> => {
  const log = openSync(join(place.folder, "gateway.log"), "w");
  const [program = "", ...args] = command;
  const child = spawn(program, args, { stdio: ["ignore", log, log] });
  for (const until = Date.now() + startMs; Date.now() < until; await sleep(50)) {
    if (child.exitCode !== null) break;
    if (await isOpen(place.port)) return child;
  }
  child.kill("SIGKILL");
  throw new Error(
    `${command.join(" ")} does not listen on ${place.port}; its output is in ${place.folder}/gateway.log`,
  );
};

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });

/** Makes a folder for the files of one gateway. */
export const makeFolder = (parent: string): string => mkdtempSync(join(parent, "gateway-"));

/** Ends a gateway that was started. */
export const end = async (child: ChildProcess): Promise<void> => {
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await closed;
};
