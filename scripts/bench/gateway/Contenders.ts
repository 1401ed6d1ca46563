/**
 * Starts the contenders of the gateway bench as separate processes in front of one provider, and ends them. If the machine has `taskset`
 * and two cores, the contender has a core to itself, and the provider shares another with this client.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Effect } from "effect";
import { freePort } from "../../programs/FreePort.ts";
import type { Target } from "./Client.ts";
import type { Question } from "./Probe.ts";
import { canRead, cpuNs, family } from "./ProcessMeter.ts";

/** A server that streams are requested from. */
export interface Contender extends Target {
  readonly name: string;
  readonly pid: number;
  /** CPU time of its processes so far, in nanoseconds. */
  readonly cpu: () => Promise<number>;
  /** Asks its `Probe`; undefined if it is not a Node process. */
  readonly probe?: (question: Question) => Promise<number>;
  readonly end: () => Promise<void>;
}

/** A contender that is not installed here, and the command that installs it. */
export interface Skipped {
  readonly name: string;
  readonly skipped: string;
}

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
const children = new Set<ChildProcess>();

/** True if a contender has its own core. */
export const pinned = availableParallelism() >= 2 && spawnSync("taskset", ["-V"]).status === 0;

/** The core of the client and the provider, the core of the contender, and the cores of a contender with several processes. */
const [clientCore, contenderCore, everyCore] = ["0", "1", `0-${availableParallelism() - 1}`];

/** Pins this process, the client, to its core. */
export const pinClient = (): void => {
  if (pinned) spawnSync("taskset", ["-a", "-c", "-p", clientCore, String(process.pid)]);
};

/** Starts the provider. */
export const provider = (): Promise<Contender> => start("direct", [pathOf("./Provider.ts")], clientCore);

/** Starts the proxy that all contenders are compared with. */
export const plainProxy = (upstream: string): Promise<Contender> =>
  start("plain node proxy", [pathOf("./PlainProxy.ts"), upstream], contenderCore);

/**
 * Starts a gateway from the sources.
 *
 * @param args of `serve`, without port, store and upstreams
 */
export const gateway = (
  name: string,
  upstream: string,
  store: "memory" | "file" | { readonly db: string },
  args: ReadonlyArray<string>,
  cores: "own" | "every" = "own",
): Promise<Contender> =>
  start(
    name,
    [
      // As docs/gateway-operation.md recommends.
      "--no-memory-reducer",
      `--v8-pool-size=${Math.max(1, Math.min(4, availableParallelism() - 1))}`,
      ...[pathOf("../../../src/cli/bin.ts"), "serve", "--port", "0"],
      ...["--db", dbOf(store)],
      ...["--openai-url", `${upstream}/v1`, "--anthropic-url", upstream, "--gemini-url", upstream],
      ...args,
    ],
    cores === "own" ? contenderCore : everyCore,
  );

const dbOf = (store: "memory" | "file" | { readonly db: string }): string => {
  if (store === "memory") return store;
  return store === "file" ? join(folder, `runs-${files}.db`) : store.db;
};

/** Number of programs started so far. It makes the names of their logs and databases unique. */
let files = 0;

/** Ends every process that was started, and removes their files. */
export const endAll = async (): Promise<void> => {
  await Promise.all([...children].map(end));
  rmSync(folder, { recursive: true, force: true });
};

const end = async (child: ChildProcess): Promise<void> => {
  children.delete(child);
  child.removeAllListeners("close");
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("close", resolve));
  // SIGKILL, because a gateway would first finish its open streams. Its own child processes are killed too.
  const started = canRead && child.pid !== undefined ? family(child.pid) : [];
  child.kill("SIGKILL");
  for (const pid of started) endProcess(pid);
  await ended;
};

const endProcess = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended with its parent.
  }
};

/** Installs the packages of `peers/package.json` next to that file, in the versions named there. */
export const installPeers = (): void => {
  const args = ["install", "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { cwd: pathOf("./peers"), stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0)
    console.error(`npm ${args.join(" ")} ended with code ${status}; contenders that it did not install are skipped`);
};

const onCores = (cores: string, command: ReadonlyArray<string>): [string, ...Array<string>] =>
  pinned ? ["taskset", "-c", cores, ...command] : [command[0] ?? "", ...command.slice(1)];

/** Starts a Node program and waits for the address in its output. */
const start = (name: string, args: ReadonlyArray<string>, cores: string): Promise<Contender> =>
  new Promise((resolve, reject) => {
    const probe = ["--no-warnings", "--expose-gc", "--import", pathOf("./Probe.ts")];
    const [command, ...rest] = onCores(cores, [process.execPath, ...probe, ...args]);
    // A gateway logs each request by default. The log goes to a file, like a service's.
    files += 1;
    const log = join(folder, `log-${files}`);
    const child = spawn(command, rest, {
      stdio: ["ignore", "pipe", openSync(log, "w"), "ipc"],
      env: { ...process.env, GATEWAY_BENCH_PROBE: "1" },
    });
    children.add(child);
    let said = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      said += String(chunk);
      const url = /listening on (http:\/\/\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve(contender(name, url, child));
      said = said.slice(-200);
    });
    child.on("close", (code) =>
      reject(new Error(`${name} ended with code ${code}: ${readFileSync(log, "utf8").slice(-2000)}`)),
    );
  });

const contender = (name: string, url: string, child: ChildProcess): Contender => {
  const pid = child.pid ?? 0;
  const probe = (question: Question): Promise<number> =>
    new Promise((resolve, reject) => {
      child.once("message", (value) => resolve(Number(value)));
      child.send(question, (error) => {
        if (error !== null) reject(error);
      });
    });
  const cpu = async () => (canRead ? cpuNs(pid) : probe({ ask: "cpu" }));
  return { name, url, pid, cpu, probe, end: () => end(child) };
};

/** A proxy from another package, if it is installed. */
export const peer = async (
  name: string,
  program: string,
  upstream: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Contender | Skipped> => {
  if (!existsSync(pathOf(`./peers/node_modules/${name}/package.json`)))
    return { name, skipped: "not installed; type `npm run bench-gateway -- --install`" };
  return start(name, [pathOf(`./peers/${program}`), upstream], contenderCore).then(
    (started) => ({ ...started, headers }),
    (error: unknown) => ({ name, skipped: String(error) }),
  );
};

/** The machine's nginx as a reverse proxy without buffering. */
export const nginx = async (upstream: string): Promise<Contender | Skipped> => {
  const binary = ["nginx", "/usr/sbin/nginx"].find((path) => spawnSync(path, ["-v"]).status === 0);
  if (binary === undefined) return { name: "nginx", skipped: "not installed; type `apt-get install nginx-light`" };
  if (!canRead) return { name: "nginx", skipped: "its CPU is read from /proc, which this machine does not have" };
  const port = await Effect.runPromise(freePort);
  const path = join(folder, "nginx.conf");
  writeFileSync(path, nginxConfig(port, new URL(upstream).host));
  const args = [binary, "-p", folder, "-e", join(folder, "nginx.log"), "-c", path, "-g", "daemon off;"];
  const [command, ...rest] = onCores(contenderCore, args);
  const child = spawn(command, rest, { stdio: ["ignore", "ignore", "inherit"] });
  children.add(child);
  const url = `http://127.0.0.1:${port}`;
  const pid = child.pid ?? 0;
  for (let tries = 0; tries < 100; tries += 1) {
    const up = await fetch(url).then(
      (response) => response.text().then(() => true),
      () => false,
    );
    if (up) return { name: "nginx", url, pid, cpu: async () => cpuNs(pid), end: () => end(child) };
    await pause(20);
  }
  return { name: "nginx", skipped: `${binary} did not answer within two seconds` };
};

/** Keeps all paths in the bench's folder, and allows enough connections for both ends of all streams that are held open. */
const nginxConfig = (port: number, upstream: string): string => `worker_processes 1;
pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000;
  upstream provider { server ${upstream}; keepalive 1024; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
}
`;
