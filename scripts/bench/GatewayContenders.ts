/**
 * Starts what the gateway's bench compares, each as processes of their own before one provider, and ends them.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Target } from "./GatewayLoad.ts";

/** Something that streams are asked of; without `pid` its memory is not looked at. */
export interface Contender extends Target {
  readonly name: string;
  readonly pid?: number;
}

/** A contender that this machine has not, and what to type to have it. */
export interface Skipped {
  readonly name: string;
  readonly skipped: string;
}

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
const children: Array<ChildProcess> = [];

/** Starts one of them when called, so that none works in the background (a run that outlives its reader) of the next. */
export type Start = () => Promise<Contender | Skipped>;

/** Starts the provider and gives what starts each contender: the provider alone first, which all others are compared with. */
export const contenders = async (): Promise<ReadonlyArray<Start>> => {
  const provider = await start([here("./GatewayPeers.ts"), "provider"]);
  const ours = async (name: string, args: ReadonlyArray<string>): Promise<Contender> => ({
    name: `gateway, ${name}`,
    ...(await start([
      ...[here("../../src/cli/bin.ts"), "serve", "--port", "0"],
      ...["--openai-url", `${provider.url}/v1`, ...args],
    ])),
  });
  const llmops = { "x-llmops-provider": "openai", "x-llmops-custom-host": `${provider.url}/v1` };
  return [
    async () => ({ name: "direct", url: provider.url }),
    () => nginx(provider.url),
    async () => ({ name: "plain node proxy", ...(await start([here("./GatewayPeers.ts"), "proxy", provider.url])) }),
    () => installed("http-proxy", "HttpProxy.mjs", provider.url),
    () => installed("@llmops/gateway", "LlmopsGateway.mjs", provider.url, llmops),
    () => ours("live, memory", ["--db", "memory"]),
    () => ours("live, file", ["--db", join(folder, "runs.db")]),
    () => ours("on_complete, memory", ["--db", "memory", "--reveal", "on_complete"]),
  ];
};

/** Ends the contender that was started last; the provider stays. */
export const endContender = (): Promise<void> => end(children.splice(1));

/** Ends every process that was started, and leaves nothing on the disk. */
export const endAll = async (): Promise<void> => {
  await end(children.splice(0));
  rmSync(folder, { recursive: true, force: true });
};

const end = async (ending: ReadonlyArray<ChildProcess>): Promise<void> => {
  await Promise.all(
    ending.map(async (child) => {
      child.removeAllListeners("close");
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("close", resolve));
      // nginx has a worker that only a signal it can handle ends with it; a gateway would first finish what is still open.
      child.kill(child.spawnfile === process.execPath ? "SIGKILL" : "SIGTERM");
      await ended;
    }),
  );
};

/** Puts the packages of `peers/package.json` beside it, in the versions that are named there. */
export const installPeers = (): void => {
  const args = ["install", "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { cwd: here("./peers"), stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0)
    console.error(`npm ${args.join(" ")} ended with code ${status}; what it did not install is skipped`);
};

/** Starts a program and waits for the address in its first line. */
const start = (args: ReadonlyArray<string>): Promise<{ readonly url: string; readonly pid: number }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--no-warnings", ...args], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => {
      said += String(chunk);
      const url = /listening on (http:\/\/\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve({ url, pid: child.pid ?? 0 });
    });
    child.on("close", (code) => reject(new Error(`${args.join(" ")} ended with code ${code}`)));
  });

/** A proxy from a package of others, where it is installed. */
const installed = async (
  name: string,
  program: string,
  upstream: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Contender | Skipped> => {
  if (!existsSync(here(`./peers/node_modules/${name}/package.json`)))
    return { name, skipped: "not installed; type `node scripts/bench/Gateway.ts --install`" };
  return start([here(`./peers/${program}`), upstream]).then(
    (started) => ({ name, ...started, headers }),
    (error: unknown) => ({ name, skipped: String(error) }),
  );
};

/** nginx of this machine, as a reverse proxy that buffers nothing. */
const nginx = async (upstream: string): Promise<Contender | Skipped> => {
  const binary = ["nginx", "/usr/sbin/nginx"].find((path) => spawnSync(path, ["-v"]).status === 0);
  if (binary === undefined) return { name: "nginx", skipped: "not installed; type `apt-get install nginx-light`" };
  const port = await freePort();
  const path = join(folder, "nginx.conf");
  writeFileSync(path, nginxConfig(port, new URL(upstream).host));
  const child = spawn(binary, ["-p", folder, "-e", join(folder, "nginx.log"), "-c", path], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 100; tries += 1) {
    const up = await fetch(url).then(
      (response) => response.text().then(() => true),
      () => false,
    );
    if (up) return { name: "nginx", url, ...(child.pid === undefined ? {} : { pid: child.pid }) };
    await pause(20);
  }
  return { name: "nginx", skipped: `${binary} did not answer within two seconds` };
};

/** All of its paths in the bench's own folder; room for both ends of as many streams as are held open. */
const nginxConfig = (port: number, upstream: string): string => `daemon off; worker_processes 1;
pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream provider { server ${upstream}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
}
`;

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
